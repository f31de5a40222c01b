//! Aggregates over the frame of a window that can not be taken back row by row: sums and variances of doubles, of which
//! nothing exact is left when a large number leaves the frame, and bit operations. Where rows leave, the frame is kept and
//! folded anew for each row, as MySQL does. That takes the square of a large frame's rows, in one go for a whole partition where frames
//! end with it: so each fold asks whether the query goes on.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use avocet_sql::relational::Checkpoint;
use avocet_types::accumulate::moments::Moments;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::stop::Stop;
use crate::udf::external;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fold {
    Sum,
    VarPop,
    VarSamp,
    StddevPop,
    StddevSamp,
    BitAnd,
    BitOr,
    BitXor,
}

impl Fold {
    /// Doubles or bits go in, and come out.
    pub const fn ty(self) -> DataType {
        match self {
            Self::BitAnd | Self::BitOr | Self::BitXor => DataType::UInt64,
            _ => DataType::Float64,
        }
    }
}

#[derive(Debug)]
pub struct OverFrame {
    fold: Fold,
    stop: Arc<Stop>,
    signature: Signature,
}

impl PartialEq for OverFrame {
    fn eq(&self, other: &Self) -> bool {
        self.fold == other.fold
    }
}

impl Eq for OverFrame {}

impl Hash for OverFrame {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fold.hash(state);
    }
}

impl OverFrame {
    pub fn create(fold: Fold, stop: Arc<Stop>) -> Arc<AggregateUDF> {
        let signature = Signature::new(TypeSignature::Exact(vec![fold.ty()]), Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(Self { fold, stop, signature }))
    }
}

impl AggregateUDFImpl for OverFrame {
    fn name(&self) -> &str {
        match self.fold {
            Fold::Sum => "frame_sum",
            Fold::VarPop => "frame_var_pop",
            Fold::VarSamp => "frame_var_samp",
            Fold::StddevPop => "frame_stddev_pop",
            Fold::StddevSamp => "frame_stddev_samp",
            Fold::BitAnd => "frame_bit_and",
            Fold::BitOr => "frame_bit_or",
            Fold::BitXor => "frame_bit_xor",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.fold.ty())
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Running::new(self.fold)))
    }

    /// Of a frame without rows.
    fn default_value(&self, _: &DataType) -> Result<ScalarValue> {
        Ok(Running::new(self.fold).result())
    }

    fn create_sliding_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Frame { fold: self.fold, rows: VecDeque::new(), stop: self.stop.clone() }))
    }
}

/// A value, or NULL. Doubles as their bits.
type Raw = Option<u64>;

fn raw_values(array: &ArrayRef) -> Box<dyn Iterator<Item = Raw> + '_> {
    match array.data_type() {
        DataType::UInt64 => Box::new(array.as_primitive::<UInt64Type>().iter()),
        _ => Box::new(array.as_primitive::<Float64Type>().iter().map(|value| value.map(f64::to_bits))),
    }
}

/// What was met so far.
#[derive(Debug)]
struct Running {
    fold: Fold,
    count: u64,
    sum: f64,
    moments: Moments,
    bits: u64,
}

impl Running {
    fn new(fold: Fold) -> Self {
        let bits = if fold == Fold::BitAnd { u64::MAX } else { 0 };
        Self { fold, count: 0, sum: 0.0, moments: Moments::default(), bits }
    }

    fn meet(&mut self, raw: Raw) {
        let Some(raw) = raw else { return };
        self.count += 1;
        match self.fold {
            Fold::BitAnd => self.bits &= raw,
            Fold::BitOr => self.bits |= raw,
            Fold::BitXor => self.bits ^= raw,
            Fold::Sum => self.sum += f64::from_bits(raw),
            Fold::VarPop | Fold::VarSamp | Fold::StddevPop | Fold::StddevSamp => {
                self.moments.add(f64::from_bits(raw));
            }
        }
    }

    fn result(&self) -> ScalarValue {
        let (population, sample) = (self.moments.population_variance(), self.moments.sample_variance());
        ScalarValue::Float64(match self.fold {
            Fold::BitAnd | Fold::BitOr | Fold::BitXor => return ScalarValue::UInt64(Some(self.bits)),
            Fold::Sum => (self.count > 0).then_some(self.sum),
            Fold::VarPop => population,
            Fold::VarSamp => sample,
            Fold::StddevPop => population.map(f64::sqrt),
            Fold::StddevSamp => sample.map(f64::sqrt),
        })
    }
}

impl Accumulator for Running {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        raw_values(&values[0]).for_each(|raw| self.meet(raw));
        Ok(())
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        exec_err!("windows are not merged")
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.result()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.result())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The rows that are in the frame.
#[derive(Debug)]
struct Frame {
    fold: Fold,
    rows: VecDeque<Raw>,
    stop: Arc<Stop>,
}

impl Accumulator for Frame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.rows.extend(raw_values(&values[0]));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.rows.drain(..values[0].len());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        exec_err!("windows are not merged")
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.stop.check().map_err(external)?;
        let mut running = Running::new(self.fold);
        self.rows.iter().for_each(|raw| running.meet(*raw));
        Ok(running.result())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.rows.capacity() * size_of::<Raw>()
    }
}
