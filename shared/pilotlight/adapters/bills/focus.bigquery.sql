-- Compiled from focus.sql by scripts/bill_sql.py: change that one.
WITH charge AS (
  SELECT
    SAFE_CAST(BilledCost AS BIGNUMERIC(38, 12)) AS usd,
    ChargePeriodStart AS since,
    ChargePeriodEnd AS until,
    COALESCE(BillingCurrency, '') AS currency,
    COALESCE(
      NULLIF(
        (
          SELECT
            MAX(tag.value)
          FROM UNNEST(Tags) AS tag
          WHERE
            tag.key = 'pilotlight.dev/team'
        ),
        ''
      ),
      NULLIF(
        (
          SELECT
            MAX(tag.value)
          FROM UNNEST(Tags) AS tag
          WHERE
            tag.key = 'team'
        ),
        ''
      ),
      NULLIF(
        (
          SELECT
            MAX(tag.value)
          FROM UNNEST(Tags) AS tag
          WHERE
            tag.key = 'Team'
        ),
        ''
      ),
      NULLIF(
        (
          SELECT
            MAX(tag.value)
          FROM UNNEST(Tags) AS tag
          WHERE
            tag.key = 'user:team'
        ),
        ''
      ),
      NULLIF(
        (
          SELECT
            MAX(tag.value)
          FROM UNNEST(Tags) AS tag
          WHERE
            tag.key = 'user:Team'
        ),
        ''
      ),
      ''
    ) AS team,
    COALESCE(
      NULLIF(
        (
          SELECT
            MAX(tag.value)
          FROM UNNEST(Tags) AS tag
          WHERE
            tag.key = 'pilotlight.dev/pool'
        ),
        ''
      ),
      NULLIF(
        (
          SELECT
            MAX(tag.value)
          FROM UNNEST(Tags) AS tag
          WHERE
            tag.key = 'eks:nodegroup-name'
        ),
        ''
      ),
      NULLIF(
        (
          SELECT
            MAX(tag.value)
          FROM UNNEST(Tags) AS tag
          WHERE
            tag.key = 'aws:eks:nodegroup-name'
        ),
        ''
      ),
      NULLIF(
        (
          SELECT
            MAX(tag.value)
          FROM UNNEST(Tags) AS tag
          WHERE
            tag.key = 'goog-k8s-node-pool-name'
        ),
        ''
      ),
      NULLIF(
        (
          SELECT
            MAX(tag.value)
          FROM UNNEST(Tags) AS tag
          WHERE
            tag.key = 'aks-managed-poolName'
        ),
        ''
      ),
      NULLIF(
        (
          SELECT
            MAX(tag.value)
          FROM UNNEST(Tags) AS tag
          WHERE
            tag.key = 'karpenter.sh/nodepool'
        ),
        ''
      ),
      ''
    ) AS pool,
    COALESCE(ServiceName, '') AS service,
    COALESCE(SubAccountId, '') AS account,
    COALESCE(BillingAccountId, '') AS payer,
    (
      SELECT
        MAX(tag.value)
      FROM UNNEST(Tags) AS tag
      WHERE
        tag.key = '{tag_1}'
    ) AS tag_1,
    (
      SELECT
        MAX(tag.value)
      FROM UNNEST(Tags) AS tag
      WHERE
        tag.key = '{tag_2}'
    ) AS tag_2,
    (
      SELECT
        MAX(tag.value)
      FROM UNNEST(Tags) AS tag
      WHERE
        tag.key = '{tag_3}'
    ) AS tag_3,
    (
      SELECT
        MAX(tag.value)
      FROM UNNEST(Tags) AS tag
      WHERE
        tag.key = '{tag_4}'
    ) AS tag_4,
    COALESCE(ChargeCategory, 'Usage') = 'Usage' AS used,
    COALESCE(
      LOWER(ChargeDescription) LIKE '%data transfer%'
      OR LOWER(ChargeDescription) LIKE '%egress%',
      FALSE
    ) AS moved,
    COALESCE(
      NULLIF(REGEXP_EXTRACT(ResourceId, '(?:^|/)(i-[0-9a-f]+)$'), ''),
      REGEXP_EXTRACT(ResourceId, '/instances/([^/]+)$'),
      ''
    ) AS instance,
    SAFE_CAST(EffectiveCost AS BIGNUMERIC(38, 12)) AS amortised,
    SAFE_CAST(ListCost AS BIGNUMERIC(38, 12)) AS listed,
    CASE
      WHEN CommitmentDiscountStatus = 'Unused'
      THEN 'unused'
      WHEN ChargeCategory = 'Purchase' AND CommitmentDiscountId <> ''
      THEN 'fee'
      WHEN CommitmentDiscountStatus = 'Used' OR CommitmentDiscountId <> ''
      THEN 'used'
      ELSE ''
    END AS commitment
  FROM `{export}`
  WHERE
    ChargePeriodStart IS NULL
    OR (
      ChargePeriodStart >= CAST('{start}' AS TIMESTAMP)
      AND ChargePeriodStart < CAST('{end}' AS TIMESTAMP)
    )
)
SELECT
  CAST(since AS DATE) AS day,
  team,
  pool,
  service,
  account,
  payer,
  tag_1,
  tag_2,
  tag_3,
  tag_4,
  currency,
  CASE WHEN since IS NULL OR until IS NULL THEN 2 WHEN usd IS NULL THEN 1 ELSE 0 END AS doubt,
  CASE WHEN moved THEN 1 ELSE 0 END AS egress,
  instance,
  commitment,
  SUM(usd) AS amount,
  SUM(COALESCE(amortised, usd)) AS effective,
  SUM(COALESCE(listed, usd)) AS list,
  COUNT(*) AS charges,
  MAX(
    CASE
      WHEN used AND UNIX_SECONDS(until) - UNIX_SECONDS(since) <= 86400
      THEN UNIX_SECONDS(until)
    END
  ) AS reach
FROM charge
GROUP BY
  1,
  2,
  3,
  4,
  5,
  6,
  7,
  8,
  9,
  10,
  11,
  12,
  13,
  14,
  15
