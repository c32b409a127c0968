"""Bills of clouds -> days of dollars. A charge that cannot be counted becomes a finding with its reason, and never
$0."""
