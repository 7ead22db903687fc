// SPDX-License-Identifier: Apache-2.0
// See kernel_spec.h.
#include "wire/kernel_spec.h"

#include "wire/fields.h"

namespace mete::wire {

std::string encode(const KernelSpec& spec) {
  Json json;
  json["argv"] = spec.argv;
  json["display_name"] = spec.display_name;
  json["language"] = "python";
  json["interrupt_mode"] = "signal";
  json["metadata"]["debugger"] = true;
  if (spec.mete) {
    Json& mete = json["metadata"]["mete"];
    if (!spec.mete->gpu.empty()) mete["gpu"] = spec.mete->gpu;
    if (!spec.mete->idle.empty()) mete["idle"] = spec.mete->idle;
    mete["python"] = spec.mete->python;
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<KernelSpec> decode_kernel_spec(std::string_view json) {
  const Result<Json> parsed = parse_json(json);
  if (!parsed) return parsed.error();
  Fields fields(*parsed, "the kernel");
  KernelSpec spec;
  spec.argv = fields.texts("argv");
  spec.display_name = fields.text("display_name");
  Fields metadata = fields.part("metadata", "the metadata");
  if (fields.has("metadata") && metadata.has("mete")) {
    Fields mete = metadata.part("mete", "the object mete");
    spec.mete.emplace();
    spec.mete->gpu = mete.text_if("gpu").value_or("");
    spec.mete->idle = mete.text_if("idle").value_or("");
    spec.mete->python = mete.text_if("python").value_or("");
    if (!mete.ok()) return mete.error();
  }
  if (!fields.ok()) return fields.error();
  return spec;
}

}  // namespace mete::wire
