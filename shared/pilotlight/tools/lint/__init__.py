"""Manifests, PromQL and shell commands as they lie in a folder, read for faults that cost GPUs or hide what they cost.

``documents`` reads a folder's files and asks the rules: ``autoscaler_rules`` of KEDA, Karpenter, Kueue and
cluster-autoscaler, ``workload_rules`` of pods, ``promql_rules`` of queries, ``shell_rules`` of clouds' commands. A rule
is a generator of ``Lint``; no file is run, no cluster asked. Called by ``pilotlight lint``. Of the policy file there
are notes (``claim_notes``) and a schema for editors (``policy_schema``), by ``pilotlight check`` and ``schema``; of an
audit chain, in the state or exported, the first record that is wrong (``audit_proof``), by ``pilotlight audit``.
"""
