-- Reports of few rows, and counts.

-- count_of_a_parent
SELECT COUNT(*) FROM orders WHERE user_id = :user
-- count_over_a_range_of_keys
SELECT COUNT(*) FROM orders WHERE id BETWEEN :order AND :order + 2000
-- count_over_a_day
SELECT COUNT(*) FROM orders WHERE created >= :day AND created < :day + INTERVAL 1 DAY
-- count_distinct_of_a_product
SELECT COUNT(DISTINCT user_id) FROM orders WHERE product_id = :product
-- sum_of_a_parent
SELECT SUM(amount), COUNT(*), AVG(amount) FROM orders WHERE user_id = :user
-- sum_with_case
SELECT SUM(CASE WHEN status = 1 THEN amount ELSE 0 END), SUM(CASE WHEN status = 2 THEN amount ELSE 0 END) FROM orders WHERE product_id = :product
-- group_by_status_of_a_product
SELECT status, COUNT(*), SUM(amount) FROM orders WHERE product_id = :product GROUP BY status ORDER BY status
-- group_by_day_of_a_product
SELECT DATE(created) AS day, COUNT(*) FROM orders WHERE product_id = :product GROUP BY DATE(created) ORDER BY day
-- group_by_along_an_index
SELECT status, MAX(created) FROM orders GROUP BY status ORDER BY status
-- group_by_with_having
SELECT user_id, COUNT(*) FROM orders WHERE product_id = :product GROUP BY user_id HAVING COUNT(*) > 1 ORDER BY user_id
-- top_of_a_product
SELECT user_id, SUM(amount) AS total FROM orders WHERE product_id = :product GROUP BY user_id ORDER BY total DESC, user_id LIMIT 5
-- with_rollup
SELECT status, COUNT(*) FROM orders WHERE product_id = :product GROUP BY status WITH ROLLUP
-- window_over_a_parent
SELECT id, ROW_NUMBER() OVER (ORDER BY created, id), SUM(amount) OVER (ORDER BY created, id) FROM orders WHERE user_id = :user ORDER BY id
-- window_newest_of_each
SELECT user_id, id FROM (SELECT user_id, id, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY created DESC, id DESC) AS place FROM orders WHERE user_id IN (:user1, :user2, :user3)) x WHERE place = 1 ORDER BY user_id
-- window_over_100_rows
SELECT id, RANK() OVER (ORDER BY amount DESC, id) FROM orders WHERE id BETWEEN :order AND :order + 99 ORDER BY id
-- group_concat
SELECT GROUP_CONCAT(id ORDER BY id) FROM orders WHERE user_id = :user
-- group_concat_over_100_rows
SELECT GROUP_CONCAT(product_id ORDER BY id SEPARATOR ';') FROM orders WHERE id BETWEEN :order AND :order + 99
-- except
SELECT product_id FROM product_tags WHERE tag_id = :tag1 AND product_id < 2000 EXCEPT SELECT product_id FROM product_tags WHERE tag_id = :tag2 AND product_id < 2000
-- intersect
SELECT product_id FROM product_tags WHERE tag_id = :tag1 AND product_id < 2000 INTERSECT SELECT product_id FROM product_tags WHERE tag_id = :tag2 AND product_id < 2000
-- recursive_path
WITH RECURSIVE path AS (SELECT id, parent_id, name FROM categories WHERE id = :category UNION ALL SELECT c.id, c.parent_id, c.name FROM categories c JOIN path ON c.id = path.parent_id) SELECT id, name FROM path ORDER BY id
-- recursive_subtree
WITH RECURSIVE tree AS (SELECT id FROM categories WHERE id = :category UNION ALL SELECT c.id FROM categories c JOIN tree ON c.parent_id = tree.id) SELECT COUNT(*) FROM tree
-- cte_read_twice
WITH mine AS (SELECT id, amount FROM orders WHERE user_id = :user) SELECT COUNT(*) FROM mine a JOIN mine b ON b.amount >= a.amount
-- greater_than_all
SELECT id FROM orders WHERE user_id = :user AND amount >= ALL (SELECT amount FROM orders WHERE user_id = :user)
-- greater_than_any
SELECT COUNT(*) FROM orders WHERE user_id = :user AND amount > ANY (SELECT amount FROM orders WHERE user_id = :user)
-- count_of_a_tenant
SELECT COUNT(*) FROM tickets WHERE tenant = :tenant
-- both_ends_of_the_key
SELECT MIN(id), MAX(id) FROM tickets
-- both_ends_of_a_tenants_keys
SELECT MIN(id), MAX(id) FROM tickets WHERE tenant = :tenant
-- newest_key_of_each_tenant
SELECT tenant, MAX(id) FROM tickets GROUP BY tenant ORDER BY tenant
