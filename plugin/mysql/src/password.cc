// SPDX-License-Identifier: GPL-2.0-only

#include "password.h"

#include <memory>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

namespace avocet {

namespace {

std::string digest(const EVP_MD *kind, std::string_view first, std::string_view second = {}) {
  const std::string all = std::string(first).append(second);
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_Digest(all.data(), all.size(), out, &length, kind, nullptr);
  return {reinterpret_cast<const char *>(out), length};
}

std::string exclusive_or(std::string left, std::string_view right) {
  for (size_t i = 0; i < left.size(); ++i) left[i] = static_cast<char>(left[i] ^ right[i % right.size()]);
  return left;
}

}  // namespace

std::optional<std::string> password_proof(std::string_view plugin, std::string_view password, std::string_view salt) {
  const bool is_native = plugin == "mysql_native_password";
  if (!is_native && plugin != "caching_sha2_password") return std::nullopt;
  if (password.empty()) return std::string();
  const EVP_MD *kind = is_native ? EVP_sha1() : EVP_sha256();
  const std::string once = digest(kind, password);
  const std::string twice = digest(kind, once);
  // The salt stands before the hash in one of them, and behind it in the other.
  return exclusive_or(once, is_native ? digest(kind, salt, twice) : digest(kind, twice, salt));
}

std::optional<std::string> sealed_password(std::string password, std::string_view salt, std::string_view public_key) {
  if (salt.empty()) return std::nullopt;
  const std::string hidden = exclusive_or(std::move(password), salt);
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(
      BIO_new_mem_buf(public_key.data(), static_cast<int>(public_key.size())), BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      text ? PEM_read_bio_PUBKEY(text.get(), nullptr, nullptr, nullptr) : nullptr, EVP_PKEY_free);
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      key ? EVP_PKEY_CTX_new(key.get(), nullptr) : nullptr, EVP_PKEY_CTX_free);
  if (!context || EVP_PKEY_encrypt_init(context.get()) <= 0 ||
      EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_OAEP_PADDING) <= 0)
    return std::nullopt;
  const auto *in = reinterpret_cast<const unsigned char *>(hidden.data());
  size_t length = 0;
  if (EVP_PKEY_encrypt(context.get(), nullptr, &length, in, hidden.size()) <= 0) return std::nullopt;
  std::string sealed(length, '\0');
  if (EVP_PKEY_encrypt(context.get(), reinterpret_cast<unsigned char *>(sealed.data()), &length, in, hidden.size()) <= 0)
    return std::nullopt;
  sealed.resize(length);
  return sealed;
}

}  // namespace avocet
