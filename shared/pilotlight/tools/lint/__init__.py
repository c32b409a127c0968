"""Manifests, PromQL and shell commands as they lie in a folder, read for faults that cost GPUs or hide what they cost.

``documents`` reads a folder's files and asks the rules: ``autoscalers`` of KEDA, Karpenter, Kueue and
cluster-autoscaler, ``workloads`` of pods, ``promql`` of queries, ``shell`` of clouds'
commands. A rule is a generator of ``Lint``.
"""
