//! A value that is read all the time and replaced seldom.
//!
//! Reading it is one load, from within a pinned epoch: readers write nothing that others read, and wait for nobody. What is
//! replaced lives on until all who were pinned then have gone on, and as long as somebody owns it.
//!
//! Invariant: `current` is what `Arc::into_raw` gave, and owns one count of it.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

pub use crossbeam_epoch::{Guard, pin};

pub struct Published<T> {
    current: AtomicPtr<T>,
    owns: PhantomData<Arc<T>>,
}

/// The value that was current when it was looked at. It is not for long: nothing that was replaced since is freed before.
pub struct Current<'p, T> {
    /// As `Arc::into_raw` gave it.
    raw: *const T,
    of: PhantomData<&'p Published<T>>,
    _pinned: Guard,
}

impl<T> Deref for Current<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the count that `Published` owned of this value is given back only after every epoch that was pinned when
        // the value was replaced, or with the `Published`, which is borrowed.
        unsafe { &*self.raw }
    }
}

impl<T: Send + Sync + 'static> Published<T> {
    pub fn new(value: T) -> Self {
        Self { current: AtomicPtr::new(Arc::into_raw(Arc::new(value)).cast_mut()), owns: PhantomData }
    }

    #[inline]
    pub fn load(&self) -> Current<'_, T> {
        let pinned = pin();
        Current { raw: self.current.load(Ordering::Acquire), of: PhantomData, _pinned: pinned }
    }

    /// The value that is current now, for as long as the guard pins its epoch.
    #[inline]
    pub fn load_in<'g>(&'g self, _pinned: &'g Guard) -> &'g T {
        // SAFETY: as for `Current`: it was current while the epoch was pinned already, and stays pinned for `'g`.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    pub fn load_owned(&self) -> Arc<T> {
        let current = self.load();
        // SAFETY: it came from `Arc::into_raw`, and its count is above zero as long as `current` is there.
        unsafe {
            Arc::increment_strong_count(current.raw);
            Arc::from_raw(current.raw)
        }
    }

    /// Puts a value in the place of another. The other is freed by and by.
    pub fn replace(&self, value: T) {
        let pinned = pin();
        let old = self.current.swap(Arc::into_raw(Arc::new(value)).cast_mut(), Ordering::AcqRel);
        // SAFETY: `current` owned a count of it, and does no longer.
        let old = unsafe { Arc::from_raw(old.cast_const()) };
        pinned.defer(move || drop(old));
        // What is replaced is large: better freed by who replaces than by who happens to be pinned later.
        pinned.flush();
    }
}

impl<T> Drop for Published<T> {
    fn drop(&mut self) {
        // SAFETY: `current` owns a count of it, and nobody has borrowed `self`.
        drop(unsafe { Arc::from_raw(self.current.get_mut().cast_const()) });
    }
}

/// Frees what was replaced and nobody looks at any more. Where nothing happens, nobody else would.
pub fn free_replaced() {
    // What is put off now goes two epochs later, and each flush may begin one.
    (0..3).for_each(|_| pin().flush());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts those of its kind that live; none may be looked at after its end.
    struct Counted {
        value: usize,
        live: Arc<AtomicUsize>,
    }

    impl Counted {
        fn new(value: usize, live: &Arc<AtomicUsize>) -> Self {
            live.fetch_add(1, Ordering::SeqCst);
            Self { value, live: live.clone() }
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.value = usize::MAX;
            self.live.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn readers_never_meet_what_is_freed_and_all_is_freed() {
        const LAST: usize = if cfg!(miri) { 50 } else { 20_000 };
        let live = Arc::new(AtomicUsize::new(0));
        let published = Published::new(Counted::new(0, &live));
        std::thread::scope(|scope| {
            for owned in [false, true] {
                let published = &published;
                scope.spawn(move || {
                    let mut before = 0;
                    while before < LAST {
                        let now = match owned {
                            true => published.load_owned().value,
                            false => published.load().value,
                        };
                        assert!(before <= now && now <= LAST, "{now} after {before}");
                        before = now;
                    }
                });
            }
            scope.spawn(|| (1..=LAST).for_each(|n| published.replace(Counted::new(n, &live))));
        });
        let owned = published.load_owned();
        drop(published);
        assert_eq!(owned.value, LAST);
        drop(owned);
        while live.load(Ordering::SeqCst) > 0 {
            free_replaced();
        }
    }
}
