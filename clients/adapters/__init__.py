"""One adapter per runtime: the host's JSON in, the host's JSON out."""
