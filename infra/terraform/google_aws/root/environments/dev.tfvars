# Seven values make a deployment. Begin here; every other has a default that works (modules/settings explains all of them).
settings = {
  # 1. The Google Cloud project to deploy into, by its id: `gcloud projects list`. One of its own is best.
  project = "my-pilotlight-project"

  # 2. The region that functions and state are in, near your clusters.
  region = "europe-west1"

  # 3. The policy: which pools may be lit, for whom, and what it may cost. The path is seen from infra/terraform/google_aws/root;
  #    price files that it names lie beside it.
  policy_file = "../../examples/eks/policy.yaml"

  clusters = {
    # 4. What the cluster is called in alerts and answers: `ml` here. It is at EKS: a secret that the output `secrets_to_make`
    #    names holds its kubeconfig, and its pools are advised on only.
    ml = {
    }
  }

  # 5. Who is told by e-mail when Pilotlight itself fails.
  alerts = { email = "you@example.com" }

  # 6. and 7. The AWS account and region whose spot warnings and failed launches are sent on. Credentials are those of your
  #    shell: `aws sts get-caller-identity`.
  aws = { account_id = "123456789012", region = "eu-west-1" }
}

# It begins in mode advise: it decides and tells, and changes nothing.
