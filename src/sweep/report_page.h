// SPDX-License-Identifier: Apache-2.0
// The style and the script of the report. The script shows the table of all results from the JSON
// in the page (sorting, a filter, pages of 50 rows), lets parallel coordinates be brushed, and
// copies commands. Without it the page lacks nothing but that table.
#pragma once

#include <string>
#include <string_view>

namespace mete::sweep {

std::string report_style();
std::string_view report_script();

}  // namespace mete::sweep
