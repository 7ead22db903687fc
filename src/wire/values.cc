// SPDX-License-Identifier: Apache-2.0
// See values.h: functions for values that have no list.
#include "wire/values.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace mete::wire {

using core::JobId;

// ---- requests ----------------------------------------------------------------------------------

void gpu_field(Writer& list, std::string_view key, const std::optional<core::GpuRequest>& gpu) {
  if (!gpu) return;
  const std::string text = to_string(*gpu);
  list.out().put(key, text);
  if (as_written(*gpu) != text) list.out().put(std::string(key) + "_written", gpu->written);
}

void read_written(Fields& fields, std::string_view key, core::GpuRequest& gpu) {
  const std::optional<std::string> text = fields.text_if(std::string(key) + "_written");
  if (!text) return;
  // A text that asks for something else is not this share as written.
  const Result<core::GpuRequest> written = core::parse_gpu(*text);
  if (written && *written == gpu) gpu.written = written->written;
}

void gpu_field(Reader& list, std::string_view key, std::optional<core::GpuRequest>& gpu) {
  Fields& fields = list.fields();
  fields.mention(std::string(key) + "_written");
  const std::optional<std::string> text = fields.text_if(key);
  if (!text) return;
  gpu = fields.take(core::parse_gpu(*text));
  read_written(fields, key, *gpu);
}

void no_wait_field(Writer& list, bool wait) { list.opt("no_wait", !wait); }
void no_wait_field(Reader& list, bool& wait) { wait = !list.fields().flag("no_wait"); }

// ---- the queue ---------------------------------------------------------------------------------

void latest_field(Writer& list, const core::Forecast& forecast) { list.put("by", forecast.by); }

void latest_field(Reader& list, core::Forecast& forecast) {
  forecast.by = forecast.at;
  list.put("by", forecast.by);
}

void reservation_field(Writer& list, std::string_view key, std::uint64_t id) {
  list.put(key, std::to_string(id));
}

void reservation_field(Reader& list, std::string_view key, std::uint64_t& id) {
  const Result<std::uint64_t> number = base::parse_uint(list.fields().text(key));
  list.check(key, number.ok() && *number != 0, "the number of a reservation");
  if (number) id = *number;
}

// ---- trials of sweeps --------------------------------------------------------------------------

void real_field(Writer& list, std::string_view key, double value) {
  if (std::isfinite(value)) list.put(key, value);
}

void real_field(Reader& list, std::string_view key, double& value) {
  value = std::numeric_limits<double>::quiet_NaN();
  list.opt(key, value);
}

void params_field(Writer& list, const core::sweep::Params& params) {
  list.elements("params", params, [](Writer& of_one, const auto& param) {
    of_one.must("name", param.first);
    fields_of(of_one, param.second);
  });
}

void params_field(Reader& list, core::sweep::Params& params) {
  list.elements("params", "the parameter", [&](Reader& of_one) {
    auto& param = params.emplace_back();
    of_one.must("name", param.first);
    fields_of(of_one, param.second);
  });
}

// ---- names -------------------------------------------------------------------------------------

void append_id(std::string& out, JobId id) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, id.number).ptr);
  if (!id.element) return;
  out += '_';
  out.append(digits, std::to_chars(digits, digits + sizeof digits, *id.element).ptr);
}

void Writer::write_id(JobId id) {
  out_.raw("\"");
  append_id(out_.out(), id);
  out_.out() += '"';
}

std::optional<core::Reason> reason_of(std::string_view text) {
  for (int i = 0; i <= static_cast<int>(core::Reason::kRetry); ++i)
    if (to_string(static_cast<core::Reason>(i)) == text) return static_cast<core::Reason>(i);
  return std::nullopt;
}

}  // namespace mete::wire
