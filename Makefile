# Everything runs from .venv/bin; nothing needs to be exported. `make help` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash

# A name tried by running it: a version manager's shim may exist for a Python that is not installed.
PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3.14 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
STAMP := .venv/.installed
WORKERS := 2
PORT := 8080
JOBS := 2
IMAGE := pilotlight:local
ENV := dev
CLOUD := google
ROOT_google := infra/terraform
ROOT_aws := infra/terraform/aws/root
ROOT_google-aws := infra/terraform/google_aws/root
TF := terraform -chdir=$(ROOT_$(CLOUD))
COMMA := ,
UV := 0.13.9
EXTRAS := alerts,bills,gcp,aws,kubernetes,dev

.PHONY: help setup check run demo test docs-test rooms reference picture serve mutants interleavings chaos interruptions format lock bench bundle package image image-steps tf providers checkov deploy drift unprotect destroy clean

need_terraform = command -v terraform >/dev/null || { echo "error: terraform 1.11 or newer is needed in PATH: developer.hashicorp.com/terraform/install" >&2; exit 2; }
need_env = test -f $(ROOT_$(CLOUD))/environments/$(ENV).tfvars || { echo "error: $(ROOT_$(CLOUD))/environments/$(ENV).tfvars is not there; copy dev.tfvars" >&2; exit 2; }

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv from the lock file (at once when nothing changed)

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed; install one and run make again" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing $$(grep -c "==" requirements.lock) packages into .venv: about a minute the first time; nothing leaves .venv"
	$(BIN)/python -m pip install --progress-bar on --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

check: $(STAMP) ## Format, lint, types, floors, prose, reference, bundle
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/prose.py
	$(BIN)/python scripts/reference.py --check
	$(MAKE) --no-print-directory bundle

run: $(STAMP) ## A dry run on a real cluster's objects, then a week of GPU jobs against the peers
	$(BIN)/pilotlight plan --sample
	$(BIN)/pilotlight week

demo: $(STAMP) ## An hour of a small cluster in about a minute: bought, warned, interrupted, refused, accounted for
	$(BIN)/pilotlight demo

# A file's tests stay together, for what they share; files begin in their order, so that long ones do not come last.
test: $(STAMP) ## Every test, JOBS files at a time (pass ARGS="-k name" for some)
	$(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

mutants: $(STAMP) ## One-line mutants of what guards money and work, drawn by a seed: which survive (ARGS="--seed N --count 100")
	$(BIN)/python scripts/mutants.py $(ARGS)

interleavings: $(STAMP) ## Every order of two workers' calls, three switches, a stall and a death (ARGS="--help")
	cd tests/chaos && ../../$(BIN)/python interleavings.py --jobs $(JOBS) $(ARGS)

chaos: $(STAMP) ## Deaths, doubles, drops, faults and forgeries by seed (ARGS="--seeds 0..199 --deliveries 40")
	$(BIN)/python tests/chaos/run_chaos.py $(ARGS)

interruptions: $(STAMP) ## Nodes taken from under their work, by seed (ARGS="--seeds 0..499")
	$(BIN)/python tests/chaos/run_interruptions.py $(ARGS)

docs-test: $(STAMP) ## Every block of commands of README and the guides: walked, or parsed where it needs a cloud
	$(BIN)/pytest tests/docs --all-blocks $(ARGS)

rooms: $(STAMP) ## docs/rooms.md from the modules' first sentences
	$(BIN)/python scripts/rooms.py --write

reference: $(STAMP) ## docs/reference and the table of completion, from the commands and the types of the policy
	$(BIN)/python scripts/reference.py --write

build/axe/.installed: ## For the tests of pages with a screen reader in mind (needs npm)
	npm install --prefix build/axe --no-save --no-audit --no-fund --silent axe-core@4.14.1
	touch $@

picture: $(STAMP) ## The pictures of README and replay, and their figures in docs/images, from runs of the built-in week (needs chromium)
	rm -rf build/picture && mkdir -p build/picture
	cd build/picture && ../../$(BIN)/pilotlight week --report week.html --json > week.json
	cd build/picture && ../../$(BIN)/pilotlight synth -o week.csv.gz
	cd build/picture && ../../$(BIN)/pilotlight tune week.csv.gz --scoring most-allocated --values 3,10,30,100,300 --json \
		--against cluster-autoscaler-pinned --against karpenter-pinned:0 --against karpenter-pinned:900 > week-curve.json
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir=build/picture/profile \
		--window-size=1100,1250 --screenshot=docs/images/report.png file://$(CURDIR)/build/picture/week.html
	cp build/picture/week.json build/picture/week-curve.json docs/images/
	$(BIN)/python scripts/week_picture.py --write

serve: $(STAMP) ## Every function on one local port (PORT=8080), by WORKERS processes beside one world on the wall clock
	$(BIN)/pilotlight serve --port $(PORT) --workers $(WORKERS)

format: $(STAMP) ## Format and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## Resolve the ranges of pyproject.toml anew into requirements.lock, with the hashes of every file
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed" >&2; exit 2; }
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV)
	build/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
		--no-annotate $(foreach extra,$(subst $(COMMA), ,$(EXTRAS)),--extra $(extra)) pyproject.toml -o requirements.lock
	rm -rf build/lock

bench: $(STAMP) ## The measurements of bench/, printed
	@missed=0; for f in bench/*/bench_*.py bench/cold_start/cold_start.py; do $(BIN)/python "$$f" || missed=1; done; exit $$missed

bundle: $(STAMP) ## build/<function>.zip for every function, byte for byte the same each time
	$(BIN)/python scripts/bundle.py

package: $(STAMP) ## The bundles to deploy, compiled for their runtime, with the hashes that a rollback names (CLOUD=aws: and layers)
	$(BIN)/python scripts/bundle.py --release
	@test "$(CLOUD)" != aws || $(BIN)/python scripts/lambda_layers.py
	@cd build && sha256sum *.zip

image: ## The home's image by Docker, loaded into kind or k3d where one of these runs (IMAGE=pilotlight:local)
	@sh scripts/image.sh $(IMAGE)

image-steps: ## The Dockerfile's steps on a root of Debian packages, and what they made served by its user (mmdebstrap, bwrap)
	python3 scripts/try_image.py

# For the machines that people and CI run Terraform on. Hashes come from the registry, so this runs where it is reached.
providers: ## Write .terraform.lock.hcl of CLOUD anew: the newest providers that are allowed, with the registry's hashes
	@$(need_terraform)
	rm -f $(ROOT_$(CLOUD))/.terraform.lock.hcl
	$(TF) providers lock -platform=linux_amd64 -platform=linux_arm64 -platform=darwin_arm64 -platform=windows_amd64

tf: ## Terraform: fmt, validate and test of every directory, with the providers of the registry
	@$(need_terraform)
	$(TF) fmt -check -recursive
	@for dir in infra/terraform infra/terraform/google infra/terraform/{aws,google_aws}{,/root} infra/terraform/modules/*/; do echo "== $$dir"; \
		terraform -chdir=$$dir init -backend=false -input=false >/dev/null && \
		terraform -chdir=$$dir validate && terraform -chdir=$$dir test || exit 1; done

checkov: build/checkov/.installed ## checkov over Terraform and the Dockerfile: every failed check has a reason beside it
	build/checkov/bin/checkov --quiet --compact --skip-download --framework terraform -d infra/terraform
	build/checkov/bin/checkov --quiet --compact --skip-download --framework dockerfile -f infra/kubernetes/home/Dockerfile
	build/checkov/bin/checkov --quiet --compact --skip-download --framework kubernetes -d infra/kubernetes/home

# In a venv of its own: it pins boto3.
build/checkov/.installed:
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed" >&2; exit 2; }
	$(PYTHON) -m venv build/checkov
	build/checkov/bin/python -m pip install --quiet --disable-pip-version-check checkov==3.3.30
	@touch $@

# In a venv of its own, for it is none of ours: what the example of workers behind a queue needs.
build/worker/.installed: examples/worker/requirements.txt
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed" >&2; exit 2; }
	$(PYTHON) -m venv build/worker
	build/worker/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# In a venv of its own, for its size: Helm 4 as a library, which the tests of the chart render, lint and install with, and the
# schemas of GitHub's workflows, of CycloneDX and of OpenTelemetry.
build/helm/.installed:
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed" >&2; exit 2; }
	$(PYTHON) -m venv build/helm
	build/helm/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: \
		helm-python-sdk==0.2.2 check-jsonschema==0.39.0 'cyclonedx-python-lib[json-validation]==11.12.0' \
		opentelemetry-proto==1.45.2
	@touch $@

deploy: package ## Show the plan of environments/ENV.tfvars, ask, and apply it (ENV=dev, CLOUD=google, aws or google-aws)
	@$(need_terraform); $(need_env)
	$(TF) init -input=false
	$(TF) workspace select -or-create $(ENV)
	$(TF) apply -var-file=environments/$(ENV).tfvars -var=environment=$(ENV)

drift: package ## Say what of ENV is no more as it was deployed: exit code 2 where something is not
	@$(need_terraform); $(need_env)
	$(TF) init -input=false
	$(TF) workspace select $(ENV)
	$(TF) plan -input=false -detailed-exitcode -var-file=environments/$(ENV).tfvars -var=environment=$(ENV)

unprotect: package ## Let the state of ENV be destroyed: shows the plan, asks; nothing is destroyed yet
	@$(need_terraform); $(need_env)
	$(TF) init -input=false
	$(TF) workspace select $(ENV)
	$(TF) apply -var-file=environments/$(ENV).tfvars -var=environment=$(ENV) -var=protected=false

destroy: package ## Show what would go of ENV, ask, and destroy it; state that was not unprotected stays in the cloud
	@$(need_terraform); $(need_env)
	$(TF) init -input=false
	$(TF) workspace select $(ENV)
	$(TF) destroy -var-file=environments/$(ENV).tfvars -var=environment=$(ENV)

clean: ## Remove what make made
	rm -rf .venv build dist .pilotlight .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
