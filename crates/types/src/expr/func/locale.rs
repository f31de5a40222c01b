//! How locales write numbers: those that MySQL knows, as it writes them.

/// Characters between the groups of digits, and before the fraction.
#[derive(Debug)]
pub(super) struct NumberFormat {
    point: u8,
    /// `None`: the digits are not divided.
    separator: Option<u8>,
    /// All groups but the last have two digits, not three.
    by_hundreds: bool,
    /// The locales, separated by blanks.
    locales: &'static str,
}

const fn divided(point: u8, separator: u8, locales: &'static str) -> NumberFormat {
    NumberFormat { point, separator: Some(separator), by_hundreds: false, locales }
}

const fn undivided(point: u8, locales: &'static str) -> NumberFormat {
    NumberFormat { point, separator: None, by_hundreds: false, locales }
}

static FORMATS: [NumberFormat; 8] = [
    NumberFormat::EN_US,
    undivided(b'.', "ar_sa sr_rs"),
    divided(
        b',',
        b'.',
        "be_by da_dk de_be de_de de_lu es_ar es_bo es_cl es_co es_ec es_es es_py es_uy es_ve fo_fo hu_hu id_id is_is \
         lt_lt mn_mn nb_no no_no ro_ro ru_ua sq_al tr_tr uk_ua vi_vn",
    ),
    // MySQL has no character there.
    divided(b',', 0, "bg_bg"),
    undivided(
        b',',
        "ca_es de_at el_gr eu_es fr_be fr_ca fr_ch fr_fr fr_lu gl_es hr_hr it_it nl_be nl_nl pl_pl pt_br pt_pt sl_si",
    ),
    divided(b',', b' ', "cs_cz es_cr et_ee fi_fi lv_lv mk_mk ru_ru sk_sk sv_fi sv_se"),
    divided(b'.', b'\'', "de_ch"),
    divided(b',', b'\'', "it_ch rm_ch"),
];

static BY_HUNDREDS: NumberFormat =
    NumberFormat { by_hundreds: true, ..divided(b'.', b',', "en_in ta_in te_in") };

impl NumberFormat {
    pub const EN_US: Self = divided(
        b'.',
        b',',
        "ar_ae ar_bh ar_dz ar_eg ar_in ar_iq ar_jo ar_kw ar_lb ar_ly ar_ma ar_om ar_qa ar_sd ar_sy ar_tn ar_ye en_au \
         en_ca en_gb en_nz en_ph en_us en_za en_zw es_do es_gt es_hn es_mx es_ni es_pa es_pe es_pr es_sv es_us gu_in \
         he_il hi_in ja_jp ko_kr ms_my th_th ur_pk zh_cn zh_hk zh_tw",
    );

    /// By name, in whatever case.
    pub fn of_locale(name: &str) -> Option<&'static Self> {
        let is_named = |known: &str| known.eq_ignore_ascii_case(name);
        FORMATS.iter().chain([&BY_HUNDREDS]).find(|format| format.locales.split(' ').any(is_named))
    }

    /// A number as it is written in decimal digits, with a point.
    pub fn grouped(&self, plain: &[u8]) -> Vec<u8> {
        let sign = usize::from(plain.first() == Some(&b'-'));
        let point = plain.iter().position(|byte| *byte == b'.').unwrap_or(plain.len());
        let mut result = plain[..sign].to_vec();
        for (at, digit) in plain[sign..point].iter().enumerate() {
            let left = point - sign - at;
            let ends_group = match self.by_hundreds {
                true => left >= 3 && (left - 3).is_multiple_of(2),
                false => left.is_multiple_of(3),
            };
            if let Some(separator) = self.separator.filter(|_| at > 0 && ends_group) {
                result.push(separator);
            }
            result.push(*digit);
        }
        if let Some((_, fraction)) = plain[point..].split_first() {
            result.push(self.point);
            result.extend_from_slice(fraction);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_in_the_locale() {
        let written = |locale: &str, number: &str| {
            let format = NumberFormat::of_locale(locale).expect("known");
            String::from_utf8(format.grouped(number.as_bytes())).expect("ASCII")
        };
        assert_eq!(written("en_US", "-1234567.89"), "-1,234,567.89");
        assert_eq!(written("DE_de", "1234567.89"), "1.234.567,89");
        assert_eq!(written("en_IN", "123456789012.89"), "1,23,45,67,89,012.89");
        assert_eq!(written("it_IT", "1234567"), "1234567");
        assert_eq!(written("sv_SE", "123"), "123");
        assert!(NumberFormat::of_locale("nosuch").is_none() && NumberFormat::of_locale("").is_none());
    }
}
