"""Bodies of an alert, as each provider takes it.

One file a provider. The words of an alert are text there: they set no type, mention
nobody and link nowhere, and a body stays within the provider's limits. The adapters of channels call it.
"""
