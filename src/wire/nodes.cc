// SPDX-License-Identifier: Apache-2.0
// See nodes.h.
#include "wire/nodes.h"

#include "base/text.h"
#include "wire/fields.h"
#include "wire/json_text.h"

namespace mete::wire {

namespace {

// A number or a boolean is read as its text: users write {"gpu.count": 4}.
std::optional<std::string> value_of(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_boolean() || json.is_number()) return json.dump();
  return std::nullopt;
}

Result<std::vector<std::string>> values_of(const Json& json, const std::string& name) {
  if (json.is_null()) return std::vector<std::string>{};
  std::vector<std::string> values;
  const Error wrong =
      Error::corrupt("the attribute " + base::quote(name) + " must be a text, a list or null");
  if (!json.is_array()) {
    std::optional<std::string> value = value_of(json);
    if (!value) return wrong;
    values.push_back(*std::move(value));
    return values;
  }
  for (const Json& element : json) {
    std::optional<std::string> value = value_of(element);
    if (!value) return wrong;
    values.push_back(*std::move(value));
  }
  return values;
}

Result<core::NodeFacts> node_from(const Json& json) {
  Fields fields(json, "the node");
  core::NodeFacts node;
  node.ec2_instance_id = fields.text_if("ec2InstanceId");
  if (fields.has("agentConnected")) node.agent_connected = fields.flag("agentConnected");
  node.agent_version = fields.text_if("agentVersion");
  if (const std::optional<std::string> time = fields.text_if("registeredAt")) {
    node.registered_at = core::parse_registered_at(*time);
    if (!node.registered_at) fields.fail("registeredAt", "a time like 2018-02-12T23:59:59Z");
  }
  node.running_tasks = fields.number_if("runningTasksCount");
  if (fields.has("taskGroups")) node.task_groups = fields.texts("taskGroups");
  const Json& attributes = fields.child("attributes");
  if (!attributes.is_null() && !attributes.is_object())
    fields.fail("attributes", "an object");
  else
    for (const auto& [name, value] : attributes.items())
      node.attributes[name] = fields.take(values_of(value, name));
  if (!fields.ok()) return fields.error();
  return node;
}

}  // namespace

Result<std::vector<NamedNode>> decode_nodes(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  if (!json->is_object()) return Error::corrupt("the nodes must be an object: {\"NAME\": {…}, …}");
  std::vector<NamedNode> nodes;
  for (const auto& [name, value] : json->items()) {
    Result<core::NodeFacts> node = node_from(value);
    if (!node) {
      Error error = std::move(node).error();
      error.message = "node " + base::quote(name) + ": " + error.message;
      return error;
    }
    nodes.emplace_back(name, *std::move(node));
  }
  return nodes;
}

std::string encode_where(const std::vector<std::string>& match) {
  JsonText out;
  out.open();
  out.put("schema", "mete.where/1");
  out.key("match").open_list();
  for (const std::string& name : match) out.value(std::string_view(name));
  out.close_list();
  out.close();
  return out.take();
}

}  // namespace mete::wire
