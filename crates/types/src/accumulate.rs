//! What aggregate functions keep of the values that they meet, the same in compiled plans and in DataFusion's.

pub mod documents;
pub mod moments;
pub mod texts;
