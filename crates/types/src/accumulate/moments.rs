//! Mean and variance of the values that were met so far (Welford 1962).

#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    count: u64,
    mean: f64,
    /// The sum of the squares of the differences from the mean.
    squares: f64,
}

impl Moments {
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let difference = value - self.mean;
        self.mean += difference / self.count as f64;
        self.squares += difference * (value - self.mean);
    }

    /// Of a population; `None` without values.
    pub fn population_variance(&self) -> Option<f64> {
        (self.count > 0).then(|| self.squares / self.count as f64)
    }

    /// Of a sample; `None` of fewer than two values.
    pub fn sample_variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }
}

/// The DOUBLE that is nearest to what is larger than any; 0 for what is no number.
pub fn nearest_finite(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(f64::MIN, f64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::Moments;

    #[test]
    fn variances_of_few_values() {
        let mut moments = Moments::default();
        assert_eq!((moments.population_variance(), moments.sample_variance()), (None, None));
        moments.add(3.0);
        assert_eq!((moments.population_variance(), moments.sample_variance()), (Some(0.0), None));
        moments.add(5.0);
        assert_eq!((moments.population_variance(), moments.sample_variance()), (Some(1.0), Some(2.0)));
    }
}
