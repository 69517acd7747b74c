// The one table of generation settings: parsing, command-line flags, documentation and refusals derive from it.
#ifndef TRANSEPT_RUNTIME_SEARCH_SETTINGTABLE_H
#define TRANSEPT_RUNTIME_SEARCH_SETTINGTABLE_H

#include "runtime/search/Settings.h"

#include <limits>
#include <variant>

namespace transept::search {

using SettingMember = std::variant<int64_t Settings::*, std::optional<int64_t> Settings::*, double Settings::*,
                                   bool Settings::*, std::vector<int64_t> Settings::*,
                                   std::vector<std::vector<int64_t>> Settings::*, std::vector<ForcedToken> Settings::*,
                                   EarlyStopping Settings::*, Algorithm Settings::*, Alignments Settings::*>;

struct SettingRow {
  const char *name;
  SettingMember member;
  const char *values; // completes "must be …"
  const char *summary;
  double least = -std::numeric_limits<double>::infinity(); // smallest number
  bool open = false;                                       // `least` itself is refused
  bool scalar = false;                                     // a list may be given as its only element
  double most = std::numeric_limits<double>::infinity();   // largest number
};

struct RefusedRow {
  const char *name;
  std::string off;       // JSON list of the values that mean "off", or "*" for a key without influence on results
  const char *advice;    // completes "is not implemented; …"
  bool sampling = false; // without meaning unless do_sample is on
};

const std::vector<SettingRow> &settingRows();
const std::vector<RefusedRow> &refusedRows();

} // namespace transept::search

#endif
