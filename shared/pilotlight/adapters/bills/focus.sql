-- The sums of a FOCUS export in a warehouse, in DuckDB's SQL. scripts/bill_sql.py compiles it to the others' beside it.
-- Amounts may be floating-point numbers there: twelve digits of them are meant.
-- Braces are filled in before it is sent: the table, the period, and up to four tags that the bill's scope names.
WITH charge AS (
    SELECT
        TRY_CAST(BilledCost AS DECIMAL(38, 12)) AS usd,
        ChargePeriodStart AS since,
        ChargePeriodEnd AS until,
        COALESCE(BillingCurrency, '') AS currency,
        COALESCE(
            NULLIF(Tags['pilotlight.dev/team'], ''), NULLIF(Tags['team'], ''), NULLIF(Tags['Team'], ''),
            NULLIF(Tags['user:team'], ''), NULLIF(Tags['user:Team'], ''), ''
        ) AS team,
        COALESCE(
            NULLIF(Tags['pilotlight.dev/pool'], ''), NULLIF(Tags['eks:nodegroup-name'], ''),
            NULLIF(Tags['aws:eks:nodegroup-name'], ''), NULLIF(Tags['goog-k8s-node-pool-name'], ''),
            NULLIF(Tags['aks-managed-poolName'], ''), NULLIF(Tags['karpenter.sh/nodepool'], ''), ''
        ) AS pool,
        COALESCE(ServiceName, '') AS service,
        COALESCE(SubAccountId, '') AS account,
        COALESCE(BillingAccountId, '') AS payer,
        Tags['{tag_1}'] AS tag_1,
        Tags['{tag_2}'] AS tag_2,
        Tags['{tag_3}'] AS tag_3,
        Tags['{tag_4}'] AS tag_4,
        COALESCE(ChargeCategory, 'Usage') = 'Usage' AS used,
        COALESCE(
            LOWER(ChargeDescription) LIKE '%data transfer%' OR LOWER(ChargeDescription) LIKE '%egress%', FALSE
        ) AS moved,
        COALESCE(
            NULLIF(REGEXP_EXTRACT(ResourceId, '(?:^|/)(i-[0-9a-f]+)$', 1), ''),
            REGEXP_EXTRACT(ResourceId, '/instances/([^/]+)$', 1), ''
        ) AS instance,
        TRY_CAST(EffectiveCost AS DECIMAL(38, 12)) AS amortised,
        TRY_CAST(ListCost AS DECIMAL(38, 12)) AS listed,
        CASE
            WHEN CommitmentDiscountStatus = 'Unused' THEN 'unused'
            WHEN ChargeCategory = 'Purchase' AND CommitmentDiscountId <> '' THEN 'fee'
            WHEN CommitmentDiscountStatus = 'Used' OR CommitmentDiscountId <> '' THEN 'used'
            ELSE ''
        END AS commitment
    FROM "{export}"
    WHERE ChargePeriodStart IS NULL OR (
        ChargePeriodStart >= CAST('{start}' AS TIMESTAMPTZ) AND ChargePeriodStart < CAST('{end}' AS TIMESTAMPTZ)
    )
)
SELECT
    CAST(since AS DATE) AS day, team, pool, service, account, payer, tag_1, tag_2, tag_3, tag_4, currency,
    CASE WHEN since IS NULL OR until IS NULL THEN 2 WHEN usd IS NULL THEN 1 ELSE 0 END AS doubt,
    CASE WHEN moved THEN 1 ELSE 0 END AS egress, instance, commitment,
    SUM(usd) AS amount,
    SUM(COALESCE(amortised, usd)) AS effective,
    SUM(COALESCE(listed, usd)) AS list,
    COUNT(*) AS charges,
    MAX(CASE WHEN used AND EPOCH(until) - EPOCH(since) <= 86400 THEN EPOCH(until) END) AS reach
FROM charge
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
