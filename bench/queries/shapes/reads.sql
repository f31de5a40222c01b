-- Single rows and sets of rows by their keys, as ORMs and services fetch them.

-- row_by_primary_key
SELECT * FROM orders WHERE id = :order
-- row_by_primary_key_as_text
SELECT * FROM orders WHERE id = :order_text
-- row_by_primary_key_as_decimal
SELECT id, amount FROM orders WHERE id = :order_decimal
-- row_by_unique_text
SELECT id, name, country FROM users WHERE email = :email
-- row_by_unique_text_in_other_case
SELECT id, name, country FROM users WHERE email = UPPER(:email)
-- row_with_limit_1
SELECT orders.* FROM orders WHERE orders.id = :order LIMIT 1
-- exists
SELECT 1 AS one FROM users WHERE users.email = :email LIMIT 1
-- rows_by_ten_keys
SELECT * FROM users WHERE id IN (:user1, :user2, :user3, :user4, :user5, :user6, :user7, :user8, :user9, :user10)
-- rows_by_ten_keys_in_order
SELECT id, name FROM users WHERE id IN (:user1, :user2, :user3, :user4, :user5, :user6, :user7, :user8, :user9, :user10) ORDER BY id DESC
-- rows_by_ored_keys
SELECT id, name FROM users WHERE id = :user1 OR id = :user2 OR id = :user3
-- row_constructors
SELECT * FROM product_tags WHERE (product_id, tag_id) IN ((:product1, :tag1), (:product2, :tag2), (:product3, :tag3))
-- row_constructors_on_an_index
SELECT id FROM orders WHERE (user_id, product_id) IN ((:user1, :product1), (:user2, :product2), (:user3, :product3))
-- row_constructor_equal
SELECT * FROM product_tags WHERE (product_id, tag_id) = (:product, :tag)
-- ored_pairs
SELECT * FROM product_tags WHERE (product_id = :product1 AND tag_id = :tag1) OR (product_id = :product2 AND tag_id = :tag2)
-- or_of_two_indexes
SELECT id, amount FROM orders WHERE user_id = :user OR product_id = :product ORDER BY id
-- or_of_two_indexes_and_more
SELECT id, amount FROM orders WHERE (user_id = :user OR product_id = :product) AND status = :state ORDER BY id
-- or_of_a_key_and_an_index
SELECT id, amount FROM orders WHERE id = :order OR user_id = :user ORDER BY id
-- ten_ored_ranges
SELECT COUNT(note) FROM orders WHERE id BETWEEN :order1 AND :order1 + 5 OR id BETWEEN :order2 AND :order2 + 5 OR id BETWEEN :order3 AND :order3 + 5 OR id BETWEEN :order4 AND :order4 + 5 OR id BETWEEN :order5 AND :order5 + 5 OR id BETWEEN :order6 AND :order6 + 5 OR id BETWEEN :order7 AND :order7 + 5 OR id BETWEEN :order8 AND :order8 + 5 OR id BETWEEN :order9 AND :order9 + 5 OR id BETWEEN :order10 AND :order10 + 5
-- rows_of_a_parent
SELECT * FROM orders WHERE user_id = :user ORDER BY id
-- rows_of_a_parent_by_text
SELECT * FROM orders WHERE user_id = :user_text ORDER BY id
-- rows_of_several_parents
SELECT * FROM orders WHERE user_id IN (:user1, :user2, :user3, :user4, :user5) ORDER BY id
-- newest_of_a_parent
SELECT * FROM orders WHERE user_id = :user ORDER BY created DESC, id DESC LIMIT 1
-- newest_of_several_parents
SELECT user_id, MAX(created) FROM orders WHERE user_id IN (:user1, :user2, :user3, :user4, :user5, :user6) GROUP BY user_id
-- text_prefix
SELECT id, email FROM users WHERE email LIKE CONCAT(:email_start, '%') ORDER BY email LIMIT 10
-- text_prefix_constant
SELECT id, email FROM users WHERE email LIKE 'user77%' ORDER BY email LIMIT 10
-- not_deleted
SELECT id, name FROM users WHERE id = :user AND deleted_at IS NULL
-- null_safe
SELECT id FROM users WHERE id = :user AND country <=> :country
-- join_to_parent
SELECT o.id, o.amount, u.name FROM orders o JOIN users u ON u.id = o.user_id WHERE o.id = :order
-- join_of_three
SELECT o.id, o.amount, u.name, p.sku FROM orders o JOIN users u ON u.id = o.user_id JOIN products p ON p.id = o.product_id WHERE o.user_id = :user ORDER BY o.id
-- left_join_counting
SELECT u.id, u.name, COUNT(o.id) FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.id IN (:user1, :user2, :user3) GROUP BY u.id, u.name ORDER BY u.id
-- tags_of_a_product
SELECT t.name FROM product_tags pt JOIN tags t ON t.id = pt.tag_id WHERE pt.product_id = :product ORDER BY t.name
-- products_with_both_tags
SELECT a.product_id FROM product_tags a JOIN product_tags b ON b.product_id = a.product_id WHERE a.tag_id = :tag1 AND b.tag_id = :tag2 ORDER BY a.product_id LIMIT 20
-- products_with_all_tags_of_a_list
SELECT product_id FROM product_tags WHERE tag_id IN (:tag1, :tag2) AND product_id < :product GROUP BY product_id HAVING COUNT(*) = 2 ORDER BY product_id LIMIT 20
-- exists_in_a_subquery
SELECT u.id FROM users u WHERE u.id IN (:user1, :user2, :user3, :user4) AND EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.status = :state) ORDER BY u.id
-- not_exists_in_a_subquery
SELECT u.id FROM users u WHERE u.id BETWEEN :user AND :user + 20 AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.status = 9) ORDER BY u.id
-- in_a_subquery
SELECT id, name FROM users WHERE id IN (SELECT user_id FROM orders WHERE product_id = :product) ORDER BY id LIMIT 20
-- scalar_subquery
SELECT u.id, (SELECT COUNT(*) FROM orders o WHERE o.user_id = u.id) AS orders FROM users u WHERE u.id IN (:user1, :user2, :user3, :user4, :user5, :user6) ORDER BY u.id
-- derived_with_group_by
SELECT u.name, x.total FROM users u JOIN (SELECT user_id, SUM(amount) AS total FROM orders WHERE user_id IN (:user1, :user2, :user3, :user4, :user5, :user6) GROUP BY user_id) x ON x.user_id = u.id ORDER BY u.id
-- union_of_keys
SELECT id, name FROM users WHERE id = :user1 UNION SELECT id, name FROM users WHERE id = :user2
-- flag_that_is_not_zero
SELECT id, title FROM tickets WHERE urgent <> 0 ORDER BY id
-- bare_flag
SELECT id, title FROM tickets WHERE urgent AND state = :state ORDER BY id
-- not_in_a_list
SELECT id, title FROM tickets WHERE urgent NOT IN (0, 5) ORDER BY id
-- not_between
SELECT id, title FROM tickets WHERE urgent NOT BETWEEN 0 AND 0 ORDER BY id
-- text_pattern_without_wildcard
SELECT id, price FROM tickets WHERE title LIKE :title ORDER BY id
-- decimal_by_text
SELECT id, title FROM tickets WHERE price = :price ORDER BY id
-- decimals_by_text
SELECT id, title FROM tickets WHERE price IN (:price1, :price2) ORDER BY id
-- large_number_by_text
SELECT id, title FROM tickets WHERE number = :number_text
-- large_numbers_by_text
SELECT id, title FROM tickets WHERE number IN (:number1_text, :number2_text) ORDER BY id
-- variables_of_the_session
SET @a = :tenant, @b = :ticket;
SELECT id, title FROM tickets WHERE tenant = @a AND id > @b ORDER BY id LIMIT 10
-- several_conditions_on_a_column
SELECT id, title FROM tickets WHERE id > 5 AND id > :ticket AND id < :ticket + 10 ORDER BY id
