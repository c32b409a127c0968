# Seven values make a deployment. Begin here; every other has a default that works (modules/settings explains all of them).
settings = {
  # 1. The Google Cloud project to deploy into, by its id: `gcloud projects list`. One of its own is best.
  project = "my-pilotlight-project"

  # 2. The region that functions and state are in, near your clusters.
  region = "europe-west1"

  # 3. The policy: which pools may be lit, for whom, and what it may cost. The path is seen from infra/terraform; price
  #    files that it names lie beside it.
  policy_file = "examples/civo/policy.yaml"

  clusters = {
    # 4. What the cluster is called in alerts and answers: `ml` here.
    ml = {
      # 5. and 6. Its region and id, as `civo kubernetes show NAME` prints them.
      civo = { region = "LON1", cluster_id = "00000000-0000-0000-0000-000000000000" }
    }
  }

  # 7. Who is told by e-mail when Pilotlight itself fails.
  alerts = { email = "you@example.com" }
}

# It begins in mode advise: it decides and tells, and changes nothing. docs/guides/civo.md goes on from there.
