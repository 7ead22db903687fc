// SPDX-License-Identifier: Apache-2.0
// One list of fields for each struct that is sent or stored. The list defines how the struct is
// written and read, and its bounds, in the order of the fields:
//
//   void fields_of(auto& list, Is<core::Process> auto& process) {
//     list.must("pid", process.pid);
//     list.check("pid", process.pid > 0, "the number of a process");
//     list.opt("name", process.name);
//   }
//
// A Writer runs the list over a const struct, a Reader over a struct that it fills. A Reader
// without a document collects the names for the comparison with the schemas (outline.h).
//   must   is always written; reading fails if it is absent
//   put    is always written; an absent field leaves the value unchanged
//   opt    is written unless the value is empty, zero, false or the third argument; an absent
//          field leaves the value unchanged
//   tell   is always written and never read: it is for other programs
// The type decides how a value is written. Wrappers add what the type does not say:
//   exact(text)             text, or texts, that come back byte for byte
//   known(name)             a name; one that only a newer version has reads as absent
//   object("the job", v)    a struct with its own list; the text names it in errors
//   each("the job", v)      a vector of such structs
//   entries("the quota", map, fields)   a map, as objects that fields(list, key, value) lists
// Where code is more readable than a list, two functions of one name take a Writer and a Reader.
// Internal to wire/.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "core/job/job.h"
#include "wire/fields.h"
#include "wire/json_text.h"

namespace mete::wire {

// A list takes the struct as it is: const for a Writer.
template <class T, class Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

// Whether the owner of a job is written: in the log, but not in a request, where the socket reports
// the user.
enum class Owner { kSaid, kUnsaid };

template <class T>
struct Exact {
  using Wrapped = T;
  T& value;
};
template <class T>
Exact<T> exact(T& value) {
  return {value};
}

template <class T>
struct Known {
  using Wrapped = T;
  T& value;
};
template <class T>
Known<T> known(T& value) {
  return {value};
}

template <class T>
struct Object {
  using Wrapped = T;
  std::string_view what;
  T& value;
};
template <class T>
Object<T> object(std::string_view what, T& value) {
  return {what, value};
}

template <class T>
struct Each {
  using Wrapped = T;
  std::string_view what;
  T& value;
};
template <class T>
Each<T> each(std::string_view what, T& values) {
  return {what, values};
}

template <class T, class Body>
struct Entries {
  std::string_view what;
  T& map;
  Body body;
};
template <class T, class Body>
Entries<T, Body> entries(std::string_view what, T& map, Body body) {
  return {what, map, body};
}

// Values that are a text in JSON: to_string() writes them, parse() reads them. kWanted names the
// expected text in errors; "": the parser's own error does.
template <class T>
struct TextOf {};
template <class T>
concept HasText = requires {
  TextOf<T>::kWanted;
};
template <class T>
struct NameIn {
  using Type = T;
};
template <class T>
struct NameIn<std::optional<T>> {
  using Type = T;
};

class Writer {
 public:
  explicit Writer(JsonText& out, Owner owner = Owner::kUnsaid) : out_(out), owner_(owner) {}

  void schema(std::string_view name) { out_.put("schema", name); }
  template <class T>
  void must(std::string_view key, const T& value) {
    out_.key(key);
    write(value);
  }
  template <class T>
  void put(std::string_view key, const T& value) {
    must(key, value);
  }
  template <class T>
  void opt(std::string_view key, const T& value) {
    if (!is_empty(value)) must(key, value);
  }
  template <class T>
  void opt(std::string_view key, const T& value, const std::type_identity_t<T>& unless) {
    if (value != unless) must(key, value);
  }
  template <class T>
  void tell(std::string_view key, const T& value) {
    must(key, value);
  }
  template <class T>
  void tell(std::string_view key, const std::optional<T>& value) {
    if (value) must(key, *value);
  }
  // An object that is not a struct: body(list) lists its fields.
  template <class Body>
  void inside(std::string_view key, std::string_view /*what*/, const Body& body) {
    out_.key(key).open();
    body(*this);
    out_.close();
  }
  template <class Body>
  void inside_if(bool when, std::string_view key, std::string_view what, const Body& body) {
    if (when) inside(key, what, body);
  }
  // Runs body(list, value) for each object of a list.
  template <class Values, class Body>
  void elements(std::string_view key, const Values& values, const Body& body) {
    out_.key(key).open_list();
    for (const auto& value : values) {
      out_.open();
      body(*this, value);
      out_.close();
    }
    out_.close_list();
  }
  // Fields that are written only if `when`; a Reader always looks for them.
  bool says(bool when) const { return when; }
  void check(std::string_view /*key*/, bool /*fine*/, std::string_view /*wanted*/) {}
  void there(std::string_view /*key*/, std::string_view /*wanted*/) {}

  Owner owner() const { return owner_; }
  JsonText& out() { return out_; }

  // The members that body(list) lists, as text for JsonText::raw(). They are made once for a value
  // that many elements share; it must stay at `value` as long as this Writer lives.
  template <class Body>
  const std::string& once(const void* value, const Body& body) {
    std::string& members = made_[value];
    if (!members.empty()) return members;
    JsonText out;
    Writer list(out, owner_);
    body(list);
    members = out.take();
    return members;
  }

  template <class T>
  void write_object(const T& value) {
    out_.open();
    fields_of(*this, value);
    out_.close();
  }

 private:
  template <class T>
  static bool is_empty(const T& value) {
    if constexpr (requires { typename T::Wrapped; })
      return is_empty(value.value);
    else if constexpr (requires { value.empty(); })
      return value.empty();
    else if constexpr (requires { value.has_value(); })
      return !value.has_value();
    else
      return value == T{};
  }

  template <class T>
  void write(const T& value) {
    if constexpr (std::same_as<T, core::JobId>) {
      write_id(value);
    } else if constexpr (requires { value.text(); }) {
      out_.value(value.text());
    } else if constexpr (HasText<T>) {
      out_.value(to_string(value));
    } else if constexpr (std::floating_point<T>) {
      out_.raw(write_json(Json(value)));
    } else {
      out_.value(value);
    }
  }
  template <class T>
  void write(const std::optional<T>& value) {
    if (value)
      write(*value);
    else
      out_.raw("null");
  }
  template <class T>
  requires(!std::same_as<T, std::string>) void write(const std::vector<T>& values) {
    out_.open_list();
    for (const T& value : values) write(value);
    out_.close_list();
  }
  template <class T>
  void write(const Exact<T>& text) {
    if constexpr (std::same_as<std::remove_const_t<T>, std::string>) {
      out_.exact(text.value);
    } else {
      out_.open_list();
      for (const std::string& word : text.value) out_.exact(word);
      out_.close_list();
    }
  }
  template <class T>
  void write(const Known<T>& name) {
    write(name.value);
  }
  template <class T>
  void write(const Object<T>& object) {
    if constexpr (requires { *object.value; })
      write_object(*object.value);
    else
      write_object(object.value);
  }
  template <class T>
  void write(const Each<T>& list) {
    out_.open_list();
    for (const auto& value : list.value) write_object(value);
    out_.close_list();
  }
  template <class T, class Body>
  void write(const Entries<T, Body>& entries) {
    out_.open_list();
    for (const auto& [name, value] : entries.map) {
      out_.open();
      entries.body(*this, name, value);
      out_.close();
    }
    out_.close_list();
  }
  void write_id(core::JobId id);

  JsonText& out_;
  Owner owner_;
  std::map<const void*, std::string> made_;
};

class Reader {
 public:
  explicit Reader(Fields& fields, Owner owner = Owner::kUnsaid) : fields_(fields), owner_(owner) {}

  void schema(std::string_view /*name*/) { fields_.mention("schema"); }
  template <class T>
  void must(std::string_view key, T&& value) {
    (void)read(key, value, true);
  }
  template <class T>
  void put(std::string_view key, T&& value) {
    (void)read(key, value, false);
  }
  template <class T>
  void opt(std::string_view key, T&& value) {
    (void)read(key, value, false);
  }
  template <class T, class Default>
  void opt(std::string_view key, T&& value, const Default& /*unless*/) {
    (void)read(key, value, false);
  }
  template <class T>
  void tell(std::string_view key, const T& /*value*/) {
    fields_.mention(key);
  }
  template <class Body>
  void inside(std::string_view key, std::string_view what, const Body& body) {
    Fields part = fields_.part(key, what);
    read_part(part, body);
  }
  template <class Body>
  void inside_if(bool /*when*/, std::string_view key, std::string_view what, const Body& body) {
    if (is_there(key)) inside(key, what, body);
  }
  // Runs body(list) for each object of a list.
  template <class Body>
  void elements(std::string_view key, std::string_view what, const Body& body) {
    if (fields_.outlines()) return inside(key, what, body);
    for (const Json& element : fields_.list(key)) {
      Fields part(element, what, fields_.unknown());
      read_part(part, body);
    }
  }
  bool says(bool /*when*/) const { return true; }
  void check(std::string_view key, bool fine, std::string_view wanted) {
    if (!fine) fields_.fail(key, wanted);
  }
  void there(std::string_view key, std::string_view wanted) {
    check(key, fields_.has(key), wanted);
  }

  Owner owner() const { return owner_; }
  Fields& fields() { return fields_; }

 private:
  template <class Body>
  void read_part(Fields& part, const Body& body) {
    Reader reader(part, owner_);
    body(reader);
    part.refuse_unknown();
    if (!part.ok()) fields_.fail(part.error());
  }

  bool is_there(std::string_view key) const { return fields_.has(key) || fields_.outlines(); }

  // Whether there was a value; a wrong one is reported to fields_.
  template <class T>
  bool read(std::string_view key, T& value, bool must) {
    if constexpr (HasText<T>) {
      return read_text<T>(key, value, must);
    } else {
      if (fields_.get(key, value)) return true;
      if (must) fields_.fail(key, Fields::wanted<T>());
      return false;
    }
  }
  template <class T>
  bool read(std::string_view key, std::optional<T>& value, bool must) {
    if constexpr (HasText<T>) {
      // A name may be absent, but not wrong.
      const bool is_name = !TextOf<T>::kWanted.empty();
      return read_text<T>(key, value, must || (is_name && fields_.has(key)));
    } else {
      T there = {};
      const bool found = read(key, there, must);
      if (found) value = std::move(there);
      return found;
    }
  }
  template <class T, class Into>
  bool read_text(std::string_view key, Into& value, bool must) {
    const std::optional<std::string> text = fields_.text_if(key);
    if (!text && must) fields_.fail(key, "text");
    if (!text) return false;
    auto parsed = TextOf<T>::parse(*text);
    if (parsed) {
      value = *std::move(parsed);
    } else if constexpr (TextOf<T>::kWanted.empty()) {
      fields_.fail(parsed.error());
    } else {
      fields_.fail(key, TextOf<T>::kWanted);
    }
    return true;
  }
  template <HasText T>
  bool read(std::string_view key, std::vector<T>& values, bool /*must*/) {
    for (const std::string& text : fields_.texts(key)) {
      auto parsed = TextOf<T>::parse(text);
      if (parsed) {
        values.push_back(*std::move(parsed));
      } else if constexpr (requires { parsed.error(); }) {
        fields_.fail(parsed.error());
      } else {
        fields_.fail(key, TextOf<T>::kWanted);
      }
    }
    return true;
  }
  bool read(std::string_view key, Exact<std::string> text, bool must) {
    std::optional<std::string> value = fields_.exact_if(key);
    if (!value && must) fields_.fail(key, "text");
    if (value) text.value = *std::move(value);
    return true;
  }
  bool read(std::string_view key, Exact<std::vector<std::string>> texts, bool /*must*/) {
    texts.value = fields_.exacts(key);
    return true;
  }
  template <class T>
  bool read(std::string_view key, Known<T> name, bool /*must*/) {
    const std::optional<std::string> text = fields_.text_if(key);
    if (!text) return false;
    if (const auto parsed = TextOf<typename NameIn<T>::Type>::parse(*text)) name.value = *parsed;
    return true;
  }
  template <class T>
  bool read(std::string_view key, Object<T> object, bool must) {
    if (!must && !is_there(key)) return false;
    inside(key, object.what, [&](Reader& list) {
      if constexpr (requires { object.value.emplace(); }) {
        fields_of(list, object.value ? *object.value : object.value.emplace());
      } else if constexpr (requires { *object.value; }) {  // shared, and const from then on
        std::remove_cvref_t<decltype(*object.value)> value;
        fields_of(list, value);
        object.value = std::move(value);
      } else {
        fields_of(list, object.value);
      }
    });
    return true;
  }
  template <class T>
  bool read(std::string_view key, Each<T> list, bool /*must*/) {
    elements(key, list.what, [&](Reader& of_one) { fields_of(of_one, list.value.emplace_back()); });
    return true;
  }
  template <class T, class Body>
  bool read(std::string_view key, Entries<T, Body> entries, bool /*must*/) {
    elements(key, entries.what, [&](Reader& of_one) {
      typename T::key_type name = {};
      typename T::mapped_type value = {};
      entries.body(of_one, name, value);
      entries.map[std::move(name)] = std::move(value);
    });
    return true;
  }

  Fields& fields_;
  Owner owner_;
};

// ---- whole documents ---------------------------------------------------------------------------

template <class T>
std::string to_json(const T& value, Owner owner = Owner::kUnsaid, std::size_t expected = 0) {
  JsonText out(expected);
  Writer(out, owner).write_object(value);
  return out.take();
}

// `what` names the document in errors: "the request".
template <class T>
Result<T> from_json(const Json& json, std::string_view what, Unknown unknown = Unknown::kIgnored,
                    Owner owner = Owner::kUnsaid) {
  Fields fields(json, what, unknown);
  Reader list(fields, owner);
  T value = {};
  fields_of(list, value);
  fields.refuse_unknown();
  if (!fields.ok()) return fields.error();
  return value;
}

template <class T>
Result<T> decode(std::string_view text, std::string_view what, Unknown unknown = Unknown::kIgnored,
                 Owner owner = Owner::kUnsaid) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  return from_json<T>(*json, what, unknown, owner);
}

template <class T>
void outline(Outline& into, Owner owner = Owner::kUnsaid) {
  Fields fields(into, "");
  Reader list(fields, owner);
  T value = {};
  fields_of(list, value);
}

}  // namespace mete::wire
