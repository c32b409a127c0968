#!/bin/sh
# Builds the image of infra/kubernetes/home/Dockerfile and loads it into the kind or k3d cluster that runs here.
set -eu

image=${1:-pilotlight:local}
if ! command -v docker >/dev/null; then
  echo "error: docker is not in PATH; podman build -f infra/kubernetes/home/Dockerfile makes the same, to push to a registry of yours" >&2
  exit 2
fi
docker build -f infra/kubernetes/home/Dockerfile --build-arg SOURCE_DATE_EPOCH="$(git log -1 --format=%ct || echo 0)" -t "$image" .

loaded=
if command -v kind >/dev/null; then
  for cluster in $(kind get clusters 2>/dev/null); do
    kind load docker-image "$image" --name "$cluster"
    loaded="$loaded kind/$cluster"
  done
fi
if command -v k3d >/dev/null; then
  for cluster in $(k3d cluster list --no-headers 2>/dev/null | cut -d' ' -f1); do
    k3d image import "$image" --cluster "$cluster"
    loaded="$loaded k3d/$cluster"
  done
fi
if [ -n "$loaded" ]; then
  echo "$image is in$loaded; next: helm install with --set image.repository=${image%:*} --set image.tag=${image##*:} --set image.pullPolicy=IfNotPresent"
else
  echo "$image is built, and no kind or k3d cluster runs here; next, with your own registry: docker tag $image registry.acme.com/pilotlight:1 && docker push registry.acme.com/pilotlight:1; then helm with --set image.repository=registry.acme.com/pilotlight --set image.tag=1"
fi
