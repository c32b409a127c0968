"""Rights that an account has at its cloud, asked of the cloud itself.

Each that is missing is a check of the doctor, with what goes without it. A file a cloud: AWS is asked by small reads,
Google by one call that lists what is granted.
"""
