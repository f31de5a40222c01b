-- What ORMs and query builders generate: aliases, derived tables, redundant conditions, eager loading; and analytics of a few rows.

-- django_exists
SELECT (1) AS `a` FROM `orders` WHERE (`orders`.`user_id` = :user AND `orders`.`status` = 1) LIMIT 1
-- django_count
SELECT COUNT(*) AS `__count` FROM `orders` WHERE `orders`.`user_id` = :user
-- django_prefetch
SELECT `orders`.`id`, `orders`.`user_id`, `orders`.`amount` FROM `orders` WHERE `orders`.`user_id` IN (:user1, :user2, :user3, :user4, :user5)
-- django_select_related
SELECT `orders`.`id`, `users`.`id`, `users`.`name`, `products`.`id`, `products`.`sku` FROM `orders` INNER JOIN `users` ON (`orders`.`user_id` = `users`.`id`) INNER JOIN `products` ON (`orders`.`product_id` = `products`.`id`) WHERE `orders`.`user_id` = :user ORDER BY `orders`.`id` LIMIT 21
-- django_annotate_count
SELECT `users`.`id`, COUNT(`orders`.`id`) AS `n` FROM `users` LEFT OUTER JOIN `orders` ON (`users`.`id` = `orders`.`user_id`) WHERE `users`.`id` IN (:user1, :user2, :user3) GROUP BY `users`.`id` ORDER BY `users`.`id`
-- django_exclude
SELECT `users`.`id` FROM `users` WHERE NOT (EXISTS(SELECT 1 AS `a` FROM `orders` U1 WHERE (U1.`status` = 1 AND U1.`user_id` = `users`.`id`) LIMIT 1)) AND `users`.`id` BETWEEN :user AND :user + 50 ORDER BY `users`.`id`
-- rails_find_by
SELECT `users`.* FROM `users` WHERE `users`.`email` = :email LIMIT 1
-- rails_eager_load
SELECT DISTINCT `users`.`id`, `users`.`name` FROM `users` LEFT OUTER JOIN `orders` ON `orders`.`user_id` = `users`.`id` WHERE `users`.`country` = :country AND `orders`.`status` = 1 ORDER BY `users`.`id` LIMIT 10
-- rails_last
SELECT `orders`.* FROM `orders` WHERE `orders`.`user_id` = :user ORDER BY `orders`.`id` DESC LIMIT 1
-- rails_in_batches
SELECT `orders`.`id` FROM `orders` WHERE `orders`.`id` > :order ORDER BY `orders`.`id` ASC LIMIT 1000
-- rails_none
SELECT `orders`.* FROM `orders` WHERE 1=0
-- hibernate_by_id
select o1_0.id, o1_0.amount, o1_0.created, o1_0.note, o1_0.product_id, o1_0.status, o1_0.user_id from orders o1_0 where o1_0.id = :order
-- hibernate_join_fetch
select u1_0.id, u1_0.email, o1_0.user_id, o1_0.id, o1_0.amount from users u1_0 left join orders o1_0 on u1_0.id = o1_0.user_id where u1_0.id = :user
-- hibernate_page
select o1_0.id, o1_0.amount from orders o1_0 where o1_0.status = :state order by o1_0.created desc, o1_0.id desc limit 0, 20
-- gorm_first
SELECT * FROM `orders` WHERE user_id = :user ORDER BY `orders`.`id` LIMIT 1
-- prisma_find_unique
SELECT `shapes`.`users`.`id`, `shapes`.`users`.`email` FROM `shapes`.`users` WHERE (`shapes`.`users`.`id` = :user AND 1=1) LIMIT 1 OFFSET 0
-- prisma_relation
SELECT `shapes`.`orders`.`id`, `shapes`.`orders`.`user_id` FROM `shapes`.`orders` WHERE (1=1 AND `shapes`.`orders`.`user_id` IN (:user1, :user2)) ORDER BY `shapes`.`orders`.`id` ASC
-- prisma_aggregate
SELECT COUNT(*), SUM(`amount`) FROM (SELECT `shapes`.`orders`.`id`, `shapes`.`orders`.`amount` FROM `shapes`.`orders` WHERE `shapes`.`orders`.`user_id` = :user LIMIT 18446744073709551615 OFFSET 0) AS `sub`
-- sequelize_include_with_limit
SELECT `u`.*, `o`.`id` AS `order_id` FROM (SELECT `users`.`id`, `users`.`name` FROM `users` WHERE `users`.`country` = :country ORDER BY `users`.`id` LIMIT 10) AS `u` LEFT OUTER JOIN `orders` AS `o` ON `u`.`id` = `o`.`user_id` AND `o`.`status` = 2 ORDER BY `u`.`id`, `o`.`id`
-- typeorm_distinct_alias
SELECT DISTINCT `distinctAlias`.`o_id` AS `ids_o_id` FROM (SELECT `o`.`id` AS `o_id`, `u`.`name` AS `u_name` FROM `orders` `o` LEFT JOIN `users` `u` ON `u`.`id` = `o`.`user_id` WHERE `o`.`product_id` = :product) `distinctAlias` ORDER BY `o_id` ASC LIMIT 10
-- laravel_has
select * from `users` where exists (select * from `orders` where `users`.`id` = `orders`.`user_id` and `status` = 3) and `country` = :country order by `id` limit 15
-- laravel_paginate
select count(*) as aggregate from `orders` where `status` = :state and `created` >= :day and `created` < :day + interval 1 day
-- count_of_rows_by_condition
SELECT COUNT(*), COUNT(note), SUM(status = 1), SUM(IF(status = 2, 1, 0)) FROM orders WHERE user_id = :user
-- coalesced_sum
SELECT COALESCE(SUM(amount), 0) AS total FROM orders WHERE user_id = :user AND created >= :day
-- min_and_max_of_a_parent
SELECT MIN(created), MAX(created) FROM orders WHERE user_id = :user
-- latest_of_each_by_join
SELECT o.id, o.user_id FROM orders o JOIN (SELECT user_id, MAX(created) AS newest FROM orders WHERE user_id IN (:user1, :user2, :user3) GROUP BY user_id) m ON m.user_id = o.user_id AND m.newest = o.created ORDER BY o.user_id, o.id
-- anti_join
SELECT u.id FROM users u LEFT JOIN orders o ON o.user_id = u.id AND o.status = 4 WHERE o.id IS NULL AND u.id BETWEEN :user AND :user + 30 ORDER BY u.id
-- not_in_a_subquery
SELECT id FROM users WHERE id BETWEEN :user AND :user + 30 AND id NOT IN (SELECT user_id FROM orders WHERE status = 0 AND user_id BETWEEN :user AND :user + 30) ORDER BY id
-- running_total
SELECT id, SUM(amount) OVER (ORDER BY created, id ROWS UNBOUNDED PRECEDING) AS total FROM orders WHERE user_id = :user ORDER BY created, id
-- lag
SELECT id, DATEDIFF(created, LAG(created) OVER (ORDER BY created, id)) AS days FROM orders WHERE user_id = :user ORDER BY created, id
-- share_of_total
SELECT status, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM orders WHERE user_id = :user GROUP BY status ORDER BY status
-- ntile
SELECT id, NTILE(4) OVER (ORDER BY amount, id) FROM orders WHERE product_id = :product ORDER BY id
-- field_order
SELECT id, name FROM users WHERE id IN (:user1, :user2, :user3) ORDER BY FIELD(id, :user3, :user1, :user2)
-- nulls_last
SELECT id, deleted_at FROM users WHERE country = :country ORDER BY deleted_at IS NULL, deleted_at DESC, id LIMIT 10
-- contains_in_a_parent
SELECT id FROM orders WHERE user_id = :user AND note LIKE '%a%' ORDER BY id
-- union_all_of_feeds
(SELECT id, created FROM orders WHERE user_id = :user1 ORDER BY created DESC, id LIMIT 10) UNION ALL (SELECT id, created FROM orders WHERE user_id = :user2 ORDER BY created DESC, id LIMIT 10) ORDER BY created DESC, id LIMIT 10
-- group_by_month_of_a_user
SELECT DATE_FORMAT(created, '%Y-%m') AS month, SUM(amount) FROM orders WHERE user_id = :user GROUP BY month ORDER BY month
-- scalar_subqueries_of_a_row
SELECT u.id, (SELECT COUNT(*) FROM orders o WHERE o.user_id = u.id) AS n, (SELECT MAX(o.created) FROM orders o WHERE o.user_id = u.id) AS last FROM users u WHERE u.id = :user
-- lateral_newest
SELECT u.id, o.id FROM users u JOIN LATERAL (SELECT id FROM orders WHERE user_id = u.id ORDER BY created DESC, id DESC LIMIT 2) o WHERE u.id IN (:user1, :user2) ORDER BY u.id, o.id
-- select_exists
SELECT EXISTS(SELECT 1 FROM orders WHERE user_id = :user AND status = 3) AS found
-- self_join
SELECT c.name, p.name FROM categories c LEFT JOIN categories p ON p.id = c.parent_id WHERE c.id = :category
-- recursive_numbers
WITH RECURSIVE days AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM days WHERE n < 12) SELECT n, COUNT(o.id) FROM days LEFT JOIN orders o ON o.user_id = :user AND MONTH(o.created) = n GROUP BY n ORDER BY n
