-- Pages of lists: by offset, by key, along indexes in both directions.

-- first_page
SELECT * FROM orders ORDER BY id LIMIT 20
-- last_page_first
SELECT * FROM orders ORDER BY id DESC LIMIT 20
-- page_by_offset
SELECT id, amount FROM orders ORDER BY id LIMIT 20 OFFSET 1000
-- page_after_a_key
SELECT id, amount FROM orders WHERE id > :order ORDER BY id LIMIT 20
-- page_before_a_key
SELECT id, amount FROM orders WHERE id < :order ORDER BY id DESC LIMIT 20
-- page_after_a_row_constructor
SELECT id, created FROM orders WHERE (created, id) > (:day, :order) ORDER BY created, id LIMIT 20
-- page_before_a_row_constructor
SELECT id, created FROM orders WHERE (created, id) < (:day, :order) ORDER BY created DESC, id DESC LIMIT 20
-- page_after_a_pair_by_or
SELECT id, created FROM orders WHERE created > :day OR (created = :day AND id > :order) ORDER BY created, id LIMIT 20
-- page_of_a_parent
SELECT id, created FROM orders WHERE user_id = :user ORDER BY created DESC LIMIT 10
-- page_of_a_parent_after_a_day
SELECT id, created FROM orders WHERE user_id = :user AND created >= :day ORDER BY created LIMIT 10
-- page_by_state
SELECT id, created FROM orders WHERE status = :state ORDER BY created DESC, id DESC LIMIT 20
-- page_of_several_states
SELECT id, created FROM orders WHERE status IN (1, 2) AND created >= :day ORDER BY created, id LIMIT 20
-- page_of_not_deleted
SELECT id, name FROM users WHERE deleted_at IS NULL ORDER BY id DESC LIMIT 20
-- page_of_a_country
SELECT id, name FROM users WHERE country = :country ORDER BY score DESC, id DESC LIMIT 20
-- page_with_parents
SELECT o.id, o.created, u.name FROM orders o JOIN users u ON u.id = o.user_id ORDER BY o.id DESC LIMIT 20
-- page_of_a_category
SELECT id, price FROM products WHERE category = :category ORDER BY price, id LIMIT 20
-- page_of_a_price_range
SELECT id, price FROM products WHERE category = :category AND price BETWEEN 10 AND 40 ORDER BY price, id LIMIT 20
-- or_in_order_with_limit
SELECT id, amount FROM orders WHERE user_id = :user OR product_id = :product ORDER BY id LIMIT 10
-- smallest_key
SELECT MIN(id) FROM orders
-- greatest_key
SELECT MAX(id) FROM orders
-- greatest_of_a_parent
SELECT MAX(created) FROM orders WHERE user_id = :user
-- smallest_after
SELECT MIN(created) FROM orders WHERE created > :day
-- next_and_previous
SELECT (SELECT MAX(id) FROM orders WHERE id < :order) AS previous, (SELECT MIN(id) FROM orders WHERE id > :order) AS next
-- first_of_a_state_by_key
SELECT id, tenant FROM tickets WHERE state = :state ORDER BY id LIMIT 20
-- last_of_a_state_by_key
SELECT id, tenant FROM tickets WHERE state = :state ORDER BY id DESC LIMIT 20
-- page_of_a_tenant_after_a_key
SELECT id, title FROM tickets WHERE tenant = :tenant AND id > :ticket ORDER BY id LIMIT 50
-- range_of_a_tenants_keys
SELECT id, title FROM tickets WHERE tenant = :tenant AND id BETWEEN :ticket AND :ticket + 2000 ORDER BY id
-- newest_key_of_a_tenant
SELECT MAX(id) FROM tickets WHERE tenant = :tenant
-- open_ones_by_key
SELECT id, title FROM tickets WHERE closed IS NULL ORDER BY id LIMIT 20
