//! AES_ENCRYPT and AES_DECRYPT: MySQL 8.4 Reference Manual, 14.13 "Encryption and Compression Functions".
//!
//! The block cipher is a crate's; what chains its blocks is here, since MySQL's modes are OpenSSL's: `cfb1` goes bit by bit,
//! `ecb` and `cbc` fill the last block up (PKCS #7).

use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockDecrypt, BlockEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use sha2::{Digest as _, Sha512};

use crate::datum::Datum;
use crate::expr::block_mode::{BlockMode, Chaining};
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::text::bytes;
use crate::expr::program::CallInfo;

type Args<'x, 'a> = &'x mut [Datum<'a>];
type Block = [u8; BLOCK];

const BLOCK: usize = 16;
/// Salt and info have fewer bytes than this, and the text of a number of rounds fewer than that.
const OPTION_LIMIT: usize = 256;
const ROUNDS_LIMIT: usize = 6;
/// Rounds of PBKDF2.
const ROUNDS: std::ops::RangeInclusive<u32> = 1_000..=65_535;

enum Cipher {
    A128(Aes128),
    A192(Aes192),
    A256(Aes256),
}

impl Cipher {
    fn new(key: &[u8]) -> Self {
        match key.len() {
            16 => Self::A128(Aes128::new(GenericArray::from_slice(key))),
            24 => Self::A192(Aes192::new(GenericArray::from_slice(key))),
            _ => Self::A256(Aes256::new(GenericArray::from_slice(key))),
        }
    }

    fn encrypt(&self, block: &mut Block) {
        let block = GenericArray::from_mut_slice(block);
        match self {
            Self::A128(cipher) => cipher.encrypt_block(block),
            Self::A192(cipher) => cipher.encrypt_block(block),
            Self::A256(cipher) => cipher.encrypt_block(block),
        }
    }

    fn decrypt(&self, block: &mut Block) {
        let block = GenericArray::from_mut_slice(block);
        match self {
            Self::A128(cipher) => cipher.decrypt_block(block),
            Self::A192(cipher) => cipher.decrypt_block(block),
            Self::A256(cipher) => cipher.decrypt_block(block),
        }
    }
}

/// What a call works with.
struct Call {
    cipher: Cipher,
    mode: BlockMode,
    /// The first block's forerunner.
    chain: Block,
}

/// Arguments: the text, the key, the initialization vector, and the way in which the key is derived.
fn call(args: &[Datum<'_>], name: &'static str, ctx: &EvalContext) -> EvalResult<Option<Call>> {
    if args[0].is_null() || args[1].is_null() {
        return Ok(None);
    }
    let mode = ctx.block_encryption;
    let mut chain = [0; BLOCK];
    match (mode.chaining, args.get(2)) {
        (Chaining::Ecb, Some(_)) if args.len() == 3 => ctx.note(&EvalError::OptionIgnored("IV")),
        (Chaining::Ecb, _) => {}
        (_, None) => return Err(EvalError::ParameterCount(name.to_owned())),
        (_, Some(given)) => match bytes(given).first_chunk() {
            Some(first) => chain = *first,
            None => return Err(EvalError::ShortVector(name)),
        },
    }
    let key = bytes(&args[1]);
    let key = match args.get(3) {
        Some(method) => derived(key, method, &args[4..], mode.key_bytes)?,
        None => {
            if key.len() > mode.key_bytes {
                ctx.note(&EvalError::KeySize(mode.key_bytes));
            }
            folded(key, mode.key_bytes)
        }
    };
    Ok(Some(Call { cipher: Cipher::new(&key), mode, chain }))
}

/// A key of any length, laid over one of the right length again and again.
fn folded(key: &[u8], len: usize) -> Vec<u8> {
    let mut folded = vec![0; len];
    key.iter().enumerate().for_each(|(at, byte)| folded[at % len] ^= byte);
    folded
}

fn derived(key: &[u8], method: &Datum<'_>, options: &[Datum<'_>], len: usize) -> EvalResult<Vec<u8>> {
    let option = |at: usize, limit: usize| match options.get(at) {
        None => Ok(&[][..]),
        Some(given) if given.is_null() || bytes(given).len() >= limit => {
            Err(EvalError::DerivationOption(limit))
        }
        Some(given) => Ok(bytes(given)),
    };
    if method.is_null() {
        return Err(EvalError::DerivationOption(OPTION_LIMIT));
    }
    let mut derived = match bytes(method) {
        b"hkdf" => hkdf(key, option(0, OPTION_LIMIT)?, option(1, OPTION_LIMIT)?),
        b"pbkdf2_hmac" => {
            let salt = option(0, OPTION_LIMIT)?;
            let rounds = match options.get(1) {
                None => *ROUNDS.start(),
                Some(_) => {
                    let text = std::str::from_utf8(option(1, ROUNDS_LIMIT)?).unwrap_or_default().trim();
                    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
                    let rounds = text[..digits].parse().ok().filter(|rounds| ROUNDS.contains(rounds));
                    rounds.ok_or(EvalError::DerivationRounds)?
                }
            };
            pbkdf2(key, salt, rounds)
        }
        _ => return Err(EvalError::DerivationMethod),
    };
    derived.truncate(len);
    Ok(derived)
}

/// RFC 2104 over SHA-512.
fn hmac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    const HASHED: usize = 128;
    let mut padded = [0; HASHED];
    match key.len() > HASHED {
        true => padded[..64].copy_from_slice(&Sha512::digest(key)),
        false => padded[..key.len()].copy_from_slice(key),
    }
    let keyed = |pad: u8, parts: &[&[u8]]| {
        let mut hash = Sha512::new_with_prefix(padded.map(|byte| byte ^ pad));
        parts.iter().for_each(|part| hash.update(part));
        hash.finalize().to_vec()
    };
    keyed(0x5c, &[&keyed(0x36, parts)])
}

/// The first block of RFC 5869: longer than any key here.
fn hkdf(key: &[u8], salt: &[u8], info: &[u8]) -> Vec<u8> {
    hmac(&hmac(salt, &[key]), &[info, &[1]])
}

/// The first block of RFC 8018's PBKDF2.
fn pbkdf2(password: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
    let mut last = hmac(password, &[salt, &1u32.to_be_bytes()]);
    let mut sum = last.clone();
    for _ in 1..rounds {
        last = hmac(password, &[&last]);
        sum.iter_mut().zip(&last).for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}

fn xor(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to ^= from);
}

impl Call {
    fn encrypt(mut self, text: &[u8]) -> Vec<u8> {
        let mut out = text.to_vec();
        if self.mode.is_padded() {
            let fill = BLOCK - text.len() % BLOCK;
            out.resize(text.len() + fill, fill as u8);
            for block in out.as_chunks_mut::<BLOCK>().0 {
                if self.mode.chaining == Chaining::Cbc {
                    xor(block, &self.chain);
                }
                self.cipher.encrypt(block);
                self.chain = *block;
            }
            return out;
        }
        self.stream(&mut out, true);
        out
    }

    /// `None` for what was encrypted with another key.
    fn decrypt(mut self, text: &[u8]) -> Option<Vec<u8>> {
        let mut out = text.to_vec();
        if !self.mode.is_padded() {
            self.stream(&mut out, false);
            return Some(out);
        }
        if text.is_empty() || !text.len().is_multiple_of(BLOCK) {
            return None;
        }
        for block in out.as_chunks_mut::<BLOCK>().0 {
            let before = *block;
            self.cipher.decrypt(block);
            if self.mode.chaining == Chaining::Cbc {
                xor(block, &self.chain);
                self.chain = before;
            }
        }
        let fill = usize::from(*out.last()?);
        let is_fill = |byte: &u8| usize::from(*byte) == fill;
        let kept = out.len().checked_sub(fill)?;
        let is_right = (1..=BLOCK).contains(&fill) && out[kept..].iter().all(is_fill);
        is_right.then(|| {
            out.truncate(kept);
            out
        })
    }

    /// What goes without filling up: the text under a stream of blocks.
    fn stream(&mut self, text: &mut [u8], encrypts: bool) {
        match self.mode.chaining {
            Chaining::Cfb(1) => text.iter_mut().for_each(|byte| self.eight_bits(byte, encrypts)),
            Chaining::Cfb(8) => {
                for byte in text {
                    let mut pad = self.chain;
                    self.cipher.encrypt(&mut pad);
                    let before = *byte;
                    *byte ^= pad[0];
                    self.chain.rotate_left(1);
                    self.chain[BLOCK - 1] = if encrypts { *byte } else { before };
                }
            }
            Chaining::Ofb => {
                for part in text.chunks_mut(BLOCK) {
                    self.cipher.encrypt(&mut self.chain);
                    xor(part, &self.chain);
                }
            }
            _ => {
                for part in text.chunks_mut(BLOCK) {
                    self.cipher.encrypt(&mut self.chain);
                    let before: Vec<u8> = part.to_vec();
                    xor(part, &self.chain);
                    let chained = if encrypts { &*part } else { &before };
                    self.chain[..chained.len()].copy_from_slice(chained);
                }
            }
        }
    }

    /// Each bit depends on the last 128.
    fn eight_bits(&mut self, byte: &mut u8, encrypts: bool) {
        for bit in (0..8).rev() {
            let mut pad = self.chain;
            self.cipher.encrypt(&mut pad);
            let before = *byte >> bit & 1;
            *byte ^= (pad[0] >> 7) << bit;
            let chained = if encrypts { *byte >> bit & 1 } else { before };
            let chain = u128::from_be_bytes(self.chain) << 1 | u128::from(chained);
            self.chain = chain.to_be_bytes();
        }
    }
}

pub(crate) fn encrypt<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let call = call(args, "aes_encrypt", ctx)?;
    Ok(call.map_or(Datum::Null, |call| Datum::Bytes(call.encrypt(bytes(&args[0])).into())))
}

pub(crate) fn decrypt<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let call = call(args, "aes_decrypt", ctx)?;
    let text = call.and_then(|call| call.decrypt(bytes(&args[0])));
    Ok(text.map_or(Datum::Null, |text| Datum::Bytes(text.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encrypted(mode: &str, text: &[u8], key: &[u8]) -> String {
        let mode = BlockMode::by_name(mode).expect("a mode");
        let call =
            || Call { cipher: Cipher::new(&folded(key, mode.key_bytes)), mode, chain: *b"1234567890123456" };
        let out = call().encrypt(text);
        assert_eq!(call().decrypt(&out).as_deref(), Some(text));
        out.iter().map(|byte| format!("{byte:02X}")).collect()
    }

    /// What MySQL 9.7 answers.
    #[test]
    fn is_mysqls() {
        assert_eq!(encrypted("aes-128-ecb", b"text", b"key"), "15E36637363712FC2E699B9C95B75393");
        assert_eq!(encrypted("aes-128-ecb", b"", b"key"), "C717530F41F320757B4AA1BFAF11C42E");
        assert_eq!(
            encrypted("aes-128-ecb", b"0123456789abcdef0", b"0123456789abcdefXYZ"),
            "A6FA2553E64ACC3EDAC10FB460A3D8A3214B867E87B7A195621EE16D290405FF"
        );
        assert_eq!(encrypted("aes-256-cbc", b"text", b"key"), "53C2A3389ACA49DC6D54A64FF0D653E4");
        assert_eq!(encrypted("aes-128-cfb1", b"text", b"key"), "7F83BB84");
        assert_eq!(encrypted("aes-128-cfb8", b"text", b"key"), "06D5B87B");
        assert_eq!(
            encrypted("aes-128-cfb128", b"0123456789abcdef0123", b"key"),
            "42DC5DB9E5AF3E6B0A302F748CA72F6E6A2C6FE8"
        );
        assert_eq!(encrypted("aes-128-ofb", b"text", b"key"), "068817FE");
        assert_eq!(encrypted("aes-192-ofb", b"text", b"key"), "0D1C7401");
        assert_eq!(encrypted("aes-192-ecb", b"text", b"key"), "51177D6BE89376477481974A0AFE7707");
    }

    #[test]
    fn other_keys_give_nothing() {
        let mode = BlockMode::DEFAULT;
        let call = |key: &[u8]| Call { cipher: Cipher::new(&folded(key, 16)), mode, chain: [0; BLOCK] };
        let out = call(b"key").encrypt(b"text");
        assert_eq!(call(b"other").decrypt(&out), None);
        assert_eq!(call(b"key").decrypt(b"x"), None);
        assert_eq!(call(b"key").decrypt(b""), None);
    }
}
