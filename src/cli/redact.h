// SPDX-License-Identifier: Apache-2.0
// Takes out of texts and documents what belongs to people: names of users, hosts, jobs and files,
// commands, labels, addresses, tokens. Each is replaced by a word of its own, "user-1", and by the
// same word wherever it occurs, so that a reader can still follow one job or one folder. A document
// keeps only what is known to be harmless: a string under a key that is not on the list is
// replaced.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "wire/fields.h"

namespace mete::cli {

class Redactor {
 public:
  // The word that stands for this text. "" stays "".
  std::string word_for(std::string_view kind, std::string_view text);

  // Replaces this text in every text from now on. Texts of one or two characters are left alone:
  // they would be found everywhere.
  void learn(std::string_view kind, std::string_view text);
  // Learns all strings of a document that document() would replace.
  void learn(const wire::Json& document);

  // Free text, such as a line of a log: what was learned, and what looks like a path, an address, a
  // token or a quoted word.
  std::string text(std::string_view text);
  wire::Json document(const wire::Json& document) { return redacted(document, ""); }

 private:
  void walk(const wire::Json& value, std::string_view key);
  wire::Json redacted(const wire::Json& value, std::string_view key);
  std::string without_learned(std::string_view text);
  std::string token(std::string_view token);

  std::map<std::string, std::string, std::less<>> words_;  // text → its word
  std::map<std::string, unsigned, std::less<>> counts_;    // of words, by kind
  std::vector<std::string> learned_;                       // the longest first
};

}  // namespace mete::cli
