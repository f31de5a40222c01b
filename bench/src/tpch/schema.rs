//! TPC-H's eight tables in MySQL's dialect. Text compares by its bytes, as in DuckDB.
//!
//! Without keys by default, as DuckDB's native tables have none; `KEYS` are what a row store needs to answer in sane time.

pub const CREATE: [(&str, &str); 8] = [
    ("region", "r_regionkey BIGINT NOT NULL, r_name CHAR(25) NOT NULL, r_comment VARCHAR(152) NOT NULL"),
    (
        "nation",
        "n_nationkey BIGINT NOT NULL, n_name CHAR(25) NOT NULL, n_regionkey BIGINT NOT NULL,
         n_comment VARCHAR(152) NOT NULL",
    ),
    (
        "supplier",
        "s_suppkey BIGINT NOT NULL, s_name CHAR(25) NOT NULL, s_address VARCHAR(40) NOT NULL,
         s_nationkey BIGINT NOT NULL, s_phone CHAR(15) NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL,
         s_comment VARCHAR(101) NOT NULL",
    ),
    (
        "customer",
        "c_custkey BIGINT NOT NULL, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(40) NOT NULL,
         c_nationkey BIGINT NOT NULL, c_phone CHAR(15) NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL,
         c_mktsegment CHAR(10) NOT NULL, c_comment VARCHAR(117) NOT NULL",
    ),
    (
        "part",
        "p_partkey BIGINT NOT NULL, p_name VARCHAR(55) NOT NULL, p_mfgr CHAR(25) NOT NULL, p_brand CHAR(10) NOT NULL,
         p_type VARCHAR(25) NOT NULL, p_size INT NOT NULL, p_container CHAR(10) NOT NULL,
         p_retailprice DECIMAL(15,2) NOT NULL, p_comment VARCHAR(23) NOT NULL",
    ),
    (
        "partsupp",
        "ps_partkey BIGINT NOT NULL, ps_suppkey BIGINT NOT NULL, ps_availqty INT NOT NULL,
         ps_supplycost DECIMAL(15,2) NOT NULL, ps_comment VARCHAR(199) NOT NULL",
    ),
    (
        "orders",
        "o_orderkey BIGINT NOT NULL, o_custkey BIGINT NOT NULL, o_orderstatus CHAR(1) NOT NULL,
         o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL, o_orderpriority CHAR(15) NOT NULL,
         o_clerk CHAR(15) NOT NULL, o_shippriority INT NOT NULL, o_comment VARCHAR(79) NOT NULL",
    ),
    (
        "lineitem",
        "l_orderkey BIGINT NOT NULL, l_partkey BIGINT NOT NULL, l_suppkey BIGINT NOT NULL, l_linenumber INT NOT NULL,
         l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL,
         l_tax DECIMAL(15,2) NOT NULL, l_returnflag CHAR(1) NOT NULL, l_linestatus CHAR(1) NOT NULL,
         l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL,
         l_shipinstruct CHAR(25) NOT NULL, l_shipmode CHAR(10) NOT NULL, l_comment VARCHAR(44) NOT NULL",
    ),
];

/// Primary and foreign keys, for the row stores.
const KEYS: [(&str, &str); 8] = [
    ("region", "PRIMARY KEY (r_regionkey)"),
    ("nation", "PRIMARY KEY (n_nationkey), KEY nation_region (n_regionkey)"),
    ("supplier", "PRIMARY KEY (s_suppkey), KEY supplier_nation (s_nationkey)"),
    ("customer", "PRIMARY KEY (c_custkey), KEY customer_nation (c_nationkey)"),
    ("part", "PRIMARY KEY (p_partkey)"),
    ("partsupp", "PRIMARY KEY (ps_partkey, ps_suppkey), KEY partsupp_supplier (ps_suppkey)"),
    ("orders", "PRIMARY KEY (o_orderkey), KEY orders_customer (o_custkey)"),
    (
        "lineitem",
        "PRIMARY KEY (l_orderkey, l_linenumber), KEY lineitem_part (l_partkey, l_suppkey),
         KEY lineitem_supplier (l_suppkey)",
    ),
];

/// The statements that make the tables.
pub fn create(keys: bool) -> Vec<String> {
    let tables = CREATE.iter().zip(&KEYS);
    let statement = |((table, columns), (_, keyed)): (&(&str, &str), &(&str, &str))| {
        let keyed = if keys { format!(", {keyed}") } else { String::new() };
        format!("CREATE TABLE {table} ({columns}{keyed}) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin")
    };
    tables.map(statement).collect()
}
