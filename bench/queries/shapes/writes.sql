-- Changes: counters, carts, queues, soft deletes, sessions. Those of several statements count as one.

-- insert_a_row
INSERT INTO events (user_id, kind, at, data) VALUES (:user, :state, :day, :token)
-- insert_ten_rows
INSERT INTO events (user_id, kind, at, data) VALUES (:user1, 1, :day, 'a'), (:user2, 1, :day, 'b'), (:user3, 1, :day, 'c'), (:user4, 1, :day, 'd'), (:user5, 1, :day, 'e'), (:user6, 1, :day, 'f'), (:user7, 1, :day, 'g'), (:user8, 1, :day, 'h'), (:user9, 1, :day, 'i'), (:user10, 1, :day, 'j')
-- counter
UPDATE counters SET n = n + 1 WHERE id = :counter
-- counter_as_text
UPDATE counters SET n = n + 1 WHERE id = :counter_text
-- counters_of_a_list
UPDATE counters SET n = n + 1 WHERE id IN (:counter1, :counter2, :counter3)
-- upsert_of_a_counter
INSERT INTO counters (id, n) VALUES (:counter, 1) ON DUPLICATE KEY UPDATE n = n + 1
-- upsert_of_a_cart
INSERT INTO carts (user_id, product_id, quantity) VALUES (:user, :product, 1) ON DUPLICATE KEY UPDATE quantity = quantity + VALUES(quantity)
-- insert_ignore
INSERT IGNORE INTO carts (user_id, product_id, quantity) VALUES (:user, :product, 1)
-- replace
REPLACE INTO sessions (token, user_id, expires, data) VALUES (:token, :user, :day, 'x')
-- update_by_row_constructors
UPDATE carts SET quantity = quantity + 1 WHERE (user_id, product_id) IN ((:user1, :product1), (:user2, :product2), (:user3, :product3))
-- delete_by_row_constructors
DELETE FROM carts WHERE (user_id, product_id) IN ((:user1, :product1), (:user2, :product2), (:user3, :product3))
-- delete_of_a_parent
DELETE FROM carts WHERE user_id = :user
-- update_by_or_of_two_indexes
UPDATE docs SET version = version + 1 WHERE owner = :owner OR reviewer = :owner
-- soft_delete
UPDATE docs SET deleted_at = NOW() WHERE id = :doc AND deleted_at IS NULL
-- soft_undelete
UPDATE docs SET deleted_at = NULL WHERE id = :doc
-- optimistic_update
UPDATE docs SET version = version + 1, title = :token WHERE id = :doc AND version >= 0
-- update_by_a_joined_table
UPDATE docs d JOIN users u ON u.id = d.owner SET d.title = u.name WHERE d.id = :doc
-- delete_of_expired
DELETE FROM sessions WHERE expires < :day ORDER BY expires LIMIT 10
-- session_touch
UPDATE sessions SET expires = :day WHERE token = :token
-- read_for_update
BEGIN;
SELECT n FROM counters WHERE id = :counter FOR UPDATE;
UPDATE counters SET n = n + 1 WHERE id = :counter;
COMMIT
-- read_for_update_by_row_constructors
BEGIN;
SELECT quantity FROM carts WHERE (user_id, product_id) IN ((:user1, :product1), (:user2, :product2)) FOR UPDATE;
COMMIT
-- queue_with_skip_locked
BEGIN;
SELECT id FROM jobs WHERE state = 0 ORDER BY run_at, id LIMIT 1 FOR UPDATE SKIP LOCKED;
COMMIT
-- queue_enqueue
INSERT INTO jobs (state, run_at, payload) VALUES (0, :day, :token)
-- queue_finish
UPDATE jobs SET state = 2 WHERE id = :job AND state < 2
-- transfer
BEGIN;
UPDATE counters SET n = n - 1 WHERE id = :counter1;
UPDATE counters SET n = n + 1 WHERE id = :counter2;
COMMIT
-- insert_of_a_query
INSERT IGNORE INTO carts (user_id, product_id, quantity) SELECT user_id, product_id, 1 FROM orders WHERE user_id = :user
-- upsert_of_several
INSERT INTO carts (user_id, product_id, quantity) VALUES (:user, :product1, 1), (:user, :product2, 2), (:user, :product3, 3) ON DUPLICATE KEY UPDATE quantity = VALUES(quantity)
-- upsert_with_a_row_alias
INSERT INTO counters (id, n) VALUES (:counter, 1) AS new ON DUPLICATE KEY UPDATE n = counters.n + new.n
-- sequence
UPDATE counters SET n = LAST_INSERT_ID(n + 1) WHERE id = :counter;
SELECT LAST_INSERT_ID() > 0
-- update_with_case
UPDATE docs SET version = CASE id WHEN :doc1 THEN 1 WHEN :doc2 THEN 2 ELSE version END WHERE id IN (:doc1, :doc2)
-- update_in_order_with_limit
UPDATE jobs SET state = 1 WHERE state = 0 ORDER BY run_at LIMIT 1
-- update_in_a_subquery
UPDATE docs SET version = version + 1 WHERE owner IN (SELECT id FROM users WHERE id = :owner)
-- delete_with_limit
DELETE FROM events WHERE user_id = :user ORDER BY at LIMIT 1
-- queue_by_primary_key
BEGIN;
SELECT id FROM tasks WHERE state = :state ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;
COMMIT
-- queue_of_several_states
BEGIN;
SELECT id FROM tasks WHERE state IN (1, 3) ORDER BY due LIMIT 1 FOR UPDATE SKIP LOCKED;
COMMIT
-- update_of_the_first_by_key
UPDATE tasks SET v = v + 1 WHERE state = :state ORDER BY id LIMIT 3
-- update_of_the_first_by_index_and_key
UPDATE tasks SET v = v + 1 WHERE due >= :day ORDER BY due, id LIMIT 3
