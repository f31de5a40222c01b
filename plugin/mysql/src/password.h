// SPDX-License-Identifier: GPL-2.0-only
// What a client shows instead of its password, as MySQL's authentication plugins define it.

#ifndef AVOCET_PASSWORD_H
#define AVOCET_PASSWORD_H

#include <optional>
#include <string>
#include <string_view>

namespace avocet {

/// The proof that mysql_native_password or caching_sha2_password wants; none for another plugin.
std::optional<std::string> password_proof(std::string_view plugin, std::string_view password, std::string_view salt);

/// The password (with its final zero byte) for the holder of a public key, as caching_sha2_password wants it without TLS.
std::optional<std::string> sealed_password(std::string password, std::string_view salt, std::string_view public_key);

}  // namespace avocet

#endif
