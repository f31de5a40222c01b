//! What an account's password must keep to, and its sign-ins.

use avocet_base::codec::{Malformed, Put, Reader};

use super::WHAT;

const SECONDS_PER_DAY: i64 = 86_400;

/// `PASSWORD …` of CREATE USER and ALTER USER. What is `None` is as the server's variables say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PasswordRules {
    /// Has to be changed before anything else is done.
    pub expired: bool,
    /// When it was given, in seconds since 1970.
    pub changed_at: i64,
    /// Days until it has to be changed; 0 for never.
    pub lifetime_days: Option<u32>,
    /// So many passwords may not be used again.
    pub history: Option<u32>,
    /// Nor those of so many days.
    pub reuse_days: Option<u32>,
    /// Whether the account has to say its password when it changes it.
    pub require_current: Option<bool>,
    /// Those before, and this one, with their times, the last first: as long as a rule asks for them.
    pub past: Vec<(i64, Vec<u8>)>,
}

impl PasswordRules {
    /// Whether it has to be changed by now (seconds since 1970), with the server's rule for accounts without one.
    pub fn has_expired(&self, now: i64, default_days: u32) -> bool {
        let days = i64::from(self.lifetime_days.unwrap_or(default_days));
        self.expired || (days > 0 && now >= self.changed_at.saturating_add(days * SECONDS_PER_DAY))
    }

    /// The passwords that may not be used again, and those that need not be remembered are forgotten.
    pub fn remembered(&mut self, now: i64, default_count: u32, default_days: u32) -> &[(i64, Vec<u8>)] {
        let count = self.history.unwrap_or(default_count) as usize;
        let since = now - i64::from(self.reuse_days.unwrap_or(default_days)) * SECONDS_PER_DAY;
        let mut at = 0;
        self.past.retain(|(given, _)| {
            at += 1;
            at <= count || *given > since
        });
        &self.past
    }

    fn encode_option(to: &mut Vec<u8>, value: Option<u32>) {
        to.put_varint(value.map_or(0, |value| u64::from(value) + 1));
    }

    fn decode_option(reader: &mut Reader<'_>) -> Result<Option<u32>, Malformed> {
        let value = reader.varint(WHAT)?;
        match value.checked_sub(1).map(u32::try_from) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(_)) => Err(reader.malformed(WHAT)),
        }
    }

    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        to.put_u8(u8::from(self.expired));
        to.put_i64(self.changed_at);
        for value in [self.lifetime_days, self.history, self.reuse_days, self.require_current.map(u32::from)]
        {
            Self::encode_option(to, value);
        }
        to.put_varint(self.past.len() as u64);
        for (given, auth) in &self.past {
            to.put_i64(*given);
            to.put_bytes(auth);
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut rules = Self {
            expired: reader.u8(WHAT)? != 0,
            changed_at: reader.u64(WHAT)?.cast_signed(),
            lifetime_days: Self::decode_option(reader)?,
            history: Self::decode_option(reader)?,
            reuse_days: Self::decode_option(reader)?,
            require_current: Self::decode_option(reader)?.map(|value| value != 0),
            past: Vec::new(),
        };
        for _ in 0..reader.varint(WHAT)? {
            let given = reader.u64(WHAT)?.cast_signed();
            rules.past.push((given, reader.bytes(WHAT)?.to_vec()));
        }
        Ok(rules)
    }
}

/// What a connection must be for an account to sign in over it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TlsRule {
    #[default]
    None,
    /// Encrypted.
    Encrypted,
    /// With a certificate of the client, which the server's authority signed.
    Certificate,
    /// With these as well, as far as they are not empty. Names as OpenSSL writes them in one line.
    Certified { subject: String, issuer: String, cipher: String },
}

/// How accounts sign in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginRules {
    pub tls: TlsRule,
    /// `FAILED_LOGIN_ATTEMPTS`: after so many in a row no more are let in; 0 for any number.
    pub failed_attempts: u16,
    /// `PASSWORD_LOCK_TIME`: for so many days; `None` for ever.
    pub lock_days: Option<u16>,
    /// When the last two were set, or the account was unlocked, in microseconds since 1970: failures before that count
    /// no more.
    pub set_at: i64,
}

impl LoginRules {
    /// Of an account that says nothing of it.
    pub const OPEN: Self = Self { tls: TlsRule::None, failed_attempts: 0, lock_days: Some(0), set_at: 0 };

    pub(super) fn encode(&self, to: &mut Vec<u8>) {
        match &self.tls {
            TlsRule::None => to.put_u8(0),
            TlsRule::Encrypted => to.put_u8(1),
            TlsRule::Certificate => to.put_u8(2),
            TlsRule::Certified { subject, issuer, cipher } => {
                to.put_u8(3);
                [subject, issuer, cipher].into_iter().for_each(|text| to.put_str(text));
            }
        }
        to.put_varint(self.failed_attempts.into());
        to.put_varint(self.lock_days.map_or(0, |days| u64::from(days) + 1));
        to.put_i64(self.set_at);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let tls = match reader.u8(WHAT)? {
            0 => TlsRule::None,
            1 => TlsRule::Encrypted,
            2 => TlsRule::Certificate,
            3 => TlsRule::Certified {
                subject: reader.str(WHAT)?.to_owned(),
                issuer: reader.str(WHAT)?.to_owned(),
                cipher: reader.str(WHAT)?.to_owned(),
            },
            _ => return Err(reader.malformed(WHAT)),
        };
        let mut small = || {
            let value = reader.varint(WHAT)?;
            u32::try_from(value).ok().filter(|value| *value <= 65_536).ok_or_else(|| reader.malformed(WHAT))
        };
        let failed_attempts = small()?.min(u16::MAX.into()) as u16;
        let lock_days = small()?.checked_sub(1).map(|days| days as u16);
        let set_at = reader.u64(WHAT)?.cast_signed();
        Ok(Self { tls, failed_attempts, lock_days, set_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_expire() {
        let mut rules = PasswordRules { changed_at: 1000, ..PasswordRules::default() };
        assert!(!rules.has_expired(i64::MAX / 2, 0));
        assert!(rules.has_expired(1000 + 2 * SECONDS_PER_DAY, 2));
        assert!(!rules.has_expired(999 + 2 * SECONDS_PER_DAY, 2));
        rules.lifetime_days = Some(0);
        assert!(!rules.has_expired(i64::MAX / 2, 2));
        rules.expired = true;
        assert!(rules.has_expired(0, 0));
    }

    #[test]
    fn passwords_are_remembered_as_long_as_a_rule_asks() {
        let day = SECONDS_PER_DAY;
        let past = vec![(9 * day, b"c".to_vec()), (5 * day, b"b".to_vec()), (day, b"a".to_vec())];
        let rules = PasswordRules { past, ..PasswordRules::default() };
        let kept = |count, days| rules.clone().remembered(10 * day, count, days).len();
        assert_eq!((kept(0, 0), kept(2, 0), kept(0, 6), kept(1, 20)), (0, 2, 2, 3));
    }
}
