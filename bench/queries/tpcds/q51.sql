-- Items whose sales on the web have ever been above those in stores, day by day
WITH web AS (
    SELECT ws_item_sk AS item_sk, d_date,
           SUM(SUM(ws_sales_price)) OVER (PARTITION BY ws_item_sk ORDER BY d_date
                                          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS sales
    FROM web_sales JOIN date_dim ON ws_sold_date_sk = d_date_sk
    WHERE d_month_seq BETWEEN 1200 AND 1211 AND ws_item_sk IS NOT NULL
    GROUP BY ws_item_sk, d_date),
store AS (
    SELECT ss_item_sk AS item_sk, d_date,
           SUM(SUM(ss_sales_price)) OVER (PARTITION BY ss_item_sk ORDER BY d_date
                                          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS sales
    FROM store_sales JOIN date_dim ON ss_sold_date_sk = d_date_sk
    WHERE d_month_seq BETWEEN 1200 AND 1211 AND ss_item_sk IS NOT NULL
    GROUP BY ss_item_sk, d_date),
-- A full outer join: all of the one with what the other has, and what only the other has.
days AS (
    SELECT web.item_sk, web.d_date, web.sales AS web_sales, store.sales AS store_sales
    FROM web LEFT JOIN store ON web.item_sk = store.item_sk AND web.d_date = store.d_date
    UNION ALL
    SELECT store.item_sk, store.d_date, NULL, store.sales
    FROM store LEFT JOIN web ON web.item_sk = store.item_sk AND web.d_date = store.d_date
    WHERE web.item_sk IS NULL),
totals AS (
    SELECT item_sk, d_date, web_sales, store_sales,
           MAX(web_sales) OVER so_far AS web_cumulative, MAX(store_sales) OVER so_far AS store_cumulative
    FROM days
    WINDOW so_far AS (PARTITION BY item_sk ORDER BY d_date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))
SELECT * FROM totals
WHERE web_cumulative > store_cumulative
ORDER BY item_sk, d_date
LIMIT 100
