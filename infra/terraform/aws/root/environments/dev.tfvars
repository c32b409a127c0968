# Five values make a deployment. Begin here; every other has a default that works (modules/settings explains all of them).

# 1. The region that everything is in: the clusters' own. Credentials are those of your shell (`aws sts get-caller-identity`).
region = "eu-west-1"

settings = {
  # 2. The policy: which pools may be lit, for whom, and what it may cost. The path is seen from infra/terraform/aws/root;
  #    price files that it names lie beside it.
  policy_file = "../../examples/eks/policy.yaml"

  clusters = {
    # 3. What the cluster is called in alerts and answers: `ml` here.
    ml = {
      # 4. Its name at EKS, as `aws eks list-clusters` prints it.
      eks = { cluster = "ml-gpu" }
    }
  }

  # 5. Who is told by e-mail when Pilotlight itself fails. AWS asks that address once whether it wants to be.
  alerts = { email = "you@example.com" }
}

# It begins in mode advise: it decides and tells, and changes nothing. docs/guides/aws.md goes on from there.
