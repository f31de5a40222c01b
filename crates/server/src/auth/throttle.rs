//! Failed sign-ins: counted for accounts that lock after some, and slowed down for whoever guesses.
//!
//! The first few of a user from one address are answered at once. From then on, sign-ins of that user from that address
//! stand in line, each a while behind the other, whatever the number of connections that they come by; those for which the
//! line is too long are turned away unheard.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use avocet_session::api::AccountName;
use parking_lot::Mutex;

use super::accounts::Account;

/// So many are answered at once.
const FREE: u32 = 4;
const STEP: Duration = Duration::from_millis(500);
/// Between two in line, at most.
const LONGEST_STEP: Duration = Duration::from_secs(4);
/// Who would have to stand in line for longer is turned away. Less than `connect_timeout`.
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// After so long without a failure all is forgotten.
const MEMORY: Duration = Duration::from_secs(120);
/// Users and addresses that are remembered.
const ENTRIES: usize = 16_384;

const SECONDS_PER_DAY: i64 = 86_400;

#[derive(Default)]
pub struct Throttle {
    guesses: Mutex<HashMap<Guesser, Guesses>>,
    accounts: Mutex<HashMap<AccountName, Failures>>,
}

/// A user name, and where the client is.
pub type Guesser = (String, String);

struct Guesses {
    failed: u32,
    last: Instant,
    /// When the next one is heard.
    next: Instant,
}

/// Failed sign-ins of an account in a row.
struct Failures {
    count: u16,
    /// When the last rule about them was made: before, they do not count.
    rule: i64,
    /// When the last of them was, in seconds since 1970.
    last: i64,
}

/// An account takes no sign-ins for a while.
pub struct Locked {
    /// `None` for ever.
    pub days: Option<u16>,
    pub remaining: Option<u16>,
    pub failures: u16,
}

impl Throttle {
    /// How long a sign-in has to wait; `None` if it is not to be heard.
    pub fn wait(&self, guesser: &Guesser, now: Instant) -> Option<Duration> {
        let mut guesses = self.guesses.lock();
        let Some(found) = guesses.get_mut(guesser) else { return Some(Duration::ZERO) };
        if now.duration_since(found.last) > MEMORY {
            guesses.remove(guesser);
            return Some(Duration::ZERO);
        }
        if found.failed < FREE {
            return Some(Duration::ZERO);
        }
        let wait = found.next.saturating_duration_since(now);
        if wait > LONGEST_WAIT {
            return None;
        }
        let step = STEP.saturating_mul(found.failed - FREE + 1).min(LONGEST_STEP);
        found.next = now + wait + step;
        Some(wait)
    }

    pub fn failed(&self, guesser: Guesser, now: Instant) {
        let mut guesses = self.guesses.lock();
        if guesses.len() >= ENTRIES && !guesses.contains_key(&guesser) {
            guesses.retain(|_, one| now.duration_since(one.last) <= MEMORY);
            // Many that guess once each: one more or less makes no difference.
            if guesses.len() >= ENTRIES {
                guesses.clear();
            }
        }
        let entry = guesses.entry(guesser).or_insert(Guesses { failed: 0, last: now, next: now });
        entry.failed += 1;
        entry.last = now;
        if entry.failed == FREE {
            entry.next = now + STEP;
        }
    }

    pub fn succeeded(&self, guesser: &Guesser) {
        self.guesses.lock().remove(guesser);
    }

    /// Whether an account is locked because of failures (seconds since 1970).
    pub fn lock_of(&self, account: &Account, now: i64) -> Option<Locked> {
        let rule = &account.login;
        if !rule.counts_failures() {
            return None;
        }
        let mut accounts = self.accounts.lock();
        let failures = accounts.get(&account.name)?;
        if failures.rule != rule.set_at || failures.count < rule.failed_attempts {
            return None;
        }
        let remaining = match rule.lock_days {
            None => None,
            Some(days) => {
                let left = failures.last + i64::from(days) * SECONDS_PER_DAY - now;
                if left <= 0 {
                    accounts.remove(&account.name);
                    return None;
                }
                Some(((left + SECONDS_PER_DAY - 1) / SECONDS_PER_DAY) as u16)
            }
        };
        Some(Locked { days: rule.lock_days, remaining, failures: failures.count })
    }

    /// Counts a wrong password of an account.
    pub fn wrong_password(&self, account: &Account, now: i64) {
        let rule = &account.login;
        if !rule.counts_failures() {
            return;
        }
        let mut accounts = self.accounts.lock();
        let new = || Failures { count: 0, rule: rule.set_at, last: now };
        let failures = accounts.entry(account.name.clone()).or_insert_with(new);
        if failures.rule != rule.set_at {
            *failures = new();
        }
        failures.count = failures.count.saturating_add(1).min(rule.failed_attempts);
        failures.last = now;
    }

    pub fn right_password(&self, account: &Account) {
        if account.login.counts_failures() {
            self.accounts.lock().remove(&account.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::accounts::{LoginRule, Plugin};
    use super::*;

    #[test]
    fn guesses_stand_in_line() {
        let throttle = Throttle::default();
        let who = ("root".to_owned(), "10.0.0.1".to_owned());
        let start = Instant::now();
        for _ in 0..FREE {
            assert_eq!(throttle.wait(&who, start), Some(Duration::ZERO));
            throttle.failed(who.clone(), start);
        }
        assert_eq!(throttle.wait(&who, start), Some(STEP));
        assert_eq!(throttle.wait(&who, start), Some(2 * STEP));
        let mut waits = std::iter::from_fn(|| throttle.wait(&who, start));
        assert!(waits.by_ref().take(100).count() < 100, "somebody is turned away");
        let other = ("root".to_owned(), "10.0.0.2".to_owned());
        assert_eq!(throttle.wait(&other, start), Some(Duration::ZERO));
        let later = start + MEMORY + Duration::from_secs(1);
        assert_eq!(throttle.wait(&who, later), Some(Duration::ZERO));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let throttle = Throttle::default();
        let now = Instant::now();
        for n in 0..2 * ENTRIES {
            throttle.failed((n.to_string(), String::new()), now);
        }
        assert!(throttle.guesses.lock().len() <= ENTRIES);
    }

    #[test]
    fn accounts_lock_after_failures_in_a_row() {
        let throttle = Throttle::default();
        let account = |failed_attempts, lock_days, set_at| Account {
            name: AccountName { user: "u".into(), host: "%".into() },
            login: LoginRule { failed_attempts, lock_days, set_at, ..LoginRule::default() },
            ..Account::new("u", "%", Plugin::Native, Vec::new())
        };
        let two = account(2, Some(1), 7);
        throttle.wrong_password(&two, 100);
        assert!(throttle.lock_of(&two, 100).is_none());
        throttle.right_password(&two);
        throttle.wrong_password(&two, 100);
        assert!(throttle.lock_of(&two, 100).is_none());
        throttle.wrong_password(&two, 100);
        let locked = throttle.lock_of(&two, 101).expect("locked");
        assert_eq!((locked.days, locked.remaining, locked.failures), (Some(1), Some(1), 2));
        assert!(throttle.lock_of(&account(2, Some(1), 8), 101).is_none(), "another rule");
        assert!(throttle.lock_of(&two, 100 + SECONDS_PER_DAY).is_none(), "a day later");
        let ever = account(1, None, 7);
        throttle.wrong_password(&ever, 100);
        assert!(throttle.lock_of(&ever, i64::MAX).is_some());
        let open = account(0, Some(0), 7);
        throttle.wrong_password(&open, 100);
        assert!(throttle.lock_of(&open, 100).is_none());
    }
}
