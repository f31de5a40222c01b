//! TPC-C's nine tables with their primary keys and the two usual secondary indexes, in MySQL's dialect.
//!
//! Foreign keys are left out, as in most published drivers, for every database alike. Text compares by its bytes, so that
//! no database pays for a collation that another does not have.

/// How large the database is. Only `warehouses` is TPC-C's own; the others shrink it for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    pub warehouses: i64,
    pub items: i64,
    /// Customers of a district, and as many orders.
    pub customers: i64,
}

pub const DISTRICTS: i64 = 10;

impl Scale {
    /// The specification's cardinalities (clause 1.2.1).
    pub fn full(warehouses: i64) -> Scale {
        Scale { warehouses, items: 100_000, customers: 3_000 }
    }

    /// A database for smoke tests: the same shape in a few thousand rows.
    pub fn tiny(warehouses: i64) -> Scale {
        Scale { warehouses, items: 200, customers: 30 }
    }

    /// How many different last names there are.
    pub fn last_names(&self) -> i64 {
        self.customers.min(1_000)
    }

    /// The first order that is not delivered yet: the last 900 of 3,000 are new.
    pub fn first_new_order(&self) -> i64 {
        self.customers * 7 / 10 + 1
    }
}

/// The statements that make the tables, to be run in the database that is in use.
pub const CREATE: [&str; 9] = [
    "CREATE TABLE warehouse (
        w_id INT NOT NULL, w_name VARCHAR(10) NOT NULL, w_street_1 VARCHAR(20) NOT NULL, w_street_2 VARCHAR(20) NOT NULL,
        w_city VARCHAR(20) NOT NULL, w_state CHAR(2) NOT NULL, w_zip CHAR(9) NOT NULL, w_tax DECIMAL(4,4) NOT NULL,
        w_ytd DECIMAL(12,2) NOT NULL,
        PRIMARY KEY (w_id)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE district (
        d_id INT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10) NOT NULL, d_street_1 VARCHAR(20) NOT NULL,
        d_street_2 VARCHAR(20) NOT NULL, d_city VARCHAR(20) NOT NULL, d_state CHAR(2) NOT NULL, d_zip CHAR(9) NOT NULL,
        d_tax DECIMAL(4,4) NOT NULL, d_ytd DECIMAL(12,2) NOT NULL, d_next_o_id INT NOT NULL,
        PRIMARY KEY (d_w_id, d_id)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE customer (
        c_id INT NOT NULL, c_d_id INT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16) NOT NULL, c_middle CHAR(2) NOT NULL,
        c_last VARCHAR(16) NOT NULL, c_street_1 VARCHAR(20) NOT NULL, c_street_2 VARCHAR(20) NOT NULL,
        c_city VARCHAR(20) NOT NULL, c_state CHAR(2) NOT NULL, c_zip CHAR(9) NOT NULL, c_phone CHAR(16) NOT NULL,
        c_since DATETIME NOT NULL, c_credit CHAR(2) NOT NULL, c_credit_lim DECIMAL(12,2) NOT NULL,
        c_discount DECIMAL(4,4) NOT NULL, c_balance DECIMAL(12,2) NOT NULL, c_ytd_payment DECIMAL(12,2) NOT NULL,
        c_payment_cnt INT NOT NULL, c_delivery_cnt INT NOT NULL, c_data VARCHAR(500) NOT NULL,
        PRIMARY KEY (c_w_id, c_d_id, c_id),
        KEY customer_last (c_w_id, c_d_id, c_last, c_first)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE history (
        h_c_id INT NOT NULL, h_c_d_id INT NOT NULL, h_c_w_id INT NOT NULL, h_d_id INT NOT NULL, h_w_id INT NOT NULL,
        h_date DATETIME NOT NULL, h_amount DECIMAL(6,2) NOT NULL, h_data VARCHAR(24) NOT NULL)
        DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE new_order (
        no_o_id INT NOT NULL, no_d_id INT NOT NULL, no_w_id INT NOT NULL,
        PRIMARY KEY (no_w_id, no_d_id, no_o_id)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE orders (
        o_id INT NOT NULL, o_d_id INT NOT NULL, o_w_id INT NOT NULL, o_c_id INT NOT NULL, o_entry_d DATETIME NOT NULL,
        o_carrier_id INT, o_ol_cnt INT NOT NULL, o_all_local INT NOT NULL,
        PRIMARY KEY (o_w_id, o_d_id, o_id),
        KEY orders_customer (o_w_id, o_d_id, o_c_id, o_id)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE order_line (
        ol_o_id INT NOT NULL, ol_d_id INT NOT NULL, ol_w_id INT NOT NULL, ol_number INT NOT NULL, ol_i_id INT NOT NULL,
        ol_supply_w_id INT NOT NULL, ol_delivery_d DATETIME, ol_quantity INT NOT NULL, ol_amount DECIMAL(6,2) NOT NULL,
        ol_dist_info CHAR(24) NOT NULL,
        PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE item (
        i_id INT NOT NULL, i_im_id INT NOT NULL, i_name VARCHAR(24) NOT NULL, i_price DECIMAL(5,2) NOT NULL,
        i_data VARCHAR(50) NOT NULL,
        PRIMARY KEY (i_id)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE stock (
        s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity INT NOT NULL, s_dist_01 CHAR(24) NOT NULL,
        s_dist_02 CHAR(24) NOT NULL, s_dist_03 CHAR(24) NOT NULL, s_dist_04 CHAR(24) NOT NULL, s_dist_05 CHAR(24) NOT NULL,
        s_dist_06 CHAR(24) NOT NULL, s_dist_07 CHAR(24) NOT NULL, s_dist_08 CHAR(24) NOT NULL, s_dist_09 CHAR(24) NOT NULL,
        s_dist_10 CHAR(24) NOT NULL, s_ytd INT NOT NULL, s_order_cnt INT NOT NULL, s_remote_cnt INT NOT NULL,
        s_data VARCHAR(50) NOT NULL,
        PRIMARY KEY (s_w_id, s_i_id)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
];
