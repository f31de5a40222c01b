-- Customers and items sold in stores alone, by catalog alone, and in both ways
WITH stores AS (
    SELECT ss_customer_sk AS customer_sk, ss_item_sk AS item_sk
    FROM store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk
    WHERE d_month_seq BETWEEN 1200 AND 1211
    GROUP BY ss_customer_sk, ss_item_sk),
catalogs AS (
    SELECT cs_bill_customer_sk AS customer_sk, cs_item_sk AS item_sk
    FROM catalog_sales JOIN date_dim ON cs_sold_date_sk = d_date_sk
    WHERE d_month_seq BETWEEN 1200 AND 1211
    GROUP BY cs_bill_customer_sk, cs_item_sk),
-- A full outer join: all of the one with what the other has, and what only the other has.
sold AS (
    SELECT stores.customer_sk AS by_store, catalogs.customer_sk AS by_catalog
    FROM stores LEFT JOIN catalogs ON stores.customer_sk = catalogs.customer_sk AND stores.item_sk = catalogs.item_sk
    UNION ALL
    SELECT NULL, catalogs.customer_sk
    FROM catalogs LEFT JOIN stores ON stores.customer_sk = catalogs.customer_sk AND stores.item_sk = catalogs.item_sk
    WHERE stores.item_sk IS NULL)
SELECT SUM(CASE WHEN by_store IS NOT NULL AND by_catalog IS NULL THEN 1 ELSE 0 END) AS store_only,
       SUM(CASE WHEN by_store IS NULL AND by_catalog IS NOT NULL THEN 1 ELSE 0 END) AS catalog_only,
       SUM(CASE WHEN by_store IS NOT NULL AND by_catalog IS NOT NULL THEN 1 ELSE 0 END) AS store_and_catalog
FROM sold
LIMIT 100
