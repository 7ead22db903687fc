// SPDX-License-Identifier: Apache-2.0
// See connection.h. Thin RAII over sqlite3 and sqlite3_stmt. to_error() maps SQLite's result codes
// to our few; a full disk is recognised by the code and by errno of the last failed call on the
// database and its log, since SQLite does not report every case as FULL.
#include "store/connection.h"

#include <cerrno>
#include <utility>

#include "base/file.h"

namespace mete::store {

namespace {

// errno of the last failed call on one of SQLite's files; 0: none failed yet.
int last_errno(sqlite3_file* file) {
  int error = 0;
  if (file != nullptr && file->pMethods != nullptr)
    file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error);
  return error;
}

// A write that found no room. SQLite reports FULL for ENOSPC, but an I/O error for a full quota,
// and sqlite3_system_errno() does not cover failures inside COMMIT; so both files are asked. A
// *sync* that finds no room stays an I/O error: it is unknown what it left on the disk.
bool is_full(sqlite3* connection, int code) {
  if ((code & 0xff) == SQLITE_FULL) return true;
  if (code != SQLITE_IOERR_WRITE) return false;
  sqlite3_file *database = nullptr, *log = nullptr;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &database);
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  const auto room = [](int error) {
    return error == ENOSPC || error == EDQUOT || error == EFBIG;  // EFBIG: ulimit -f
  };
  const int of_database = last_errno(database), of_log = last_errno(log);
  return (room(of_database) && (of_log == 0 || room(of_log))) || (room(of_log) && of_database == 0);
}

ErrorCode code_of(sqlite3* connection, int code) {
  if (is_full(connection, code)) return ErrorCode::kExhausted;
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // our SQL is right, so the tables that it names are not
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
      return ErrorCode::kCorrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorCode::kBusy;
    case SQLITE_TOOBIG:
    case SQLITE_NOMEM:
      return ErrorCode::kInvalid;  // it cannot be stored, and everything else can
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return ErrorCode::kDenied;
    default:
      return ErrorCode::kIo;
  }
}

std::string hint_for(ErrorCode code, const std::string& file) {
  switch (code) {
    case ErrorCode::kExhausted:
      return "free some space on the file system of " + file + "; see also quota and ulimit -f";
    case ErrorCode::kBusy:
      return "another process has it open; is meted running already?";
    case ErrorCode::kDenied:
      return "the file and its folder must belong to the user meted runs as, and be writable";
    case ErrorCode::kCorrupt:
      return "put a whole copy back, or save what is whole: mete daemon repair --state-dir " +
             base::parent_path(file);
    default:
      return "look at the disk (dmesg), then start meted again: it goes on from what was kept";
  }
}

}  // namespace

Error to_error(sqlite3* connection, int code, std::string_view what) {
  const char* name = connection == nullptr ? nullptr : sqlite3_db_filename(connection, "main");
  const std::string file = name == nullptr ? "" : name;
  const ErrorCode kind = code_of(connection, code);
  std::string message = std::string(what) + " " + file + ": " + sqlite3_errstr(code);
  std::string evidence = "SQLite result " + std::to_string(code);
  if (connection != nullptr) {
    evidence += std::string(": ") + sqlite3_errmsg(connection);
    if (const int error = sqlite3_system_errno(connection); error != 0)
      evidence += " (" + Error::from_errno("system", error).message + ")";
  }
  return Error{kind, std::move(message)}
      .with_evidence(std::move(evidence))
      .with_hint(hint_for(kind, file));
}

void Statement::bind(int parameter, std::int64_t value) {
  const int code = sqlite3_bind_int64(handle_.get(), parameter, value);
  if (bind_code_ == SQLITE_OK) bind_code_ = code;
}

void Statement::bind(int parameter, std::string_view text) {
  // A null pointer would bind NULL, and an empty string_view may contain one.
  const char* data = text.data() == nullptr ? "" : text.data();
  const int code =
      sqlite3_bind_text64(handle_.get(), parameter, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (bind_code_ == SQLITE_OK) bind_code_ = code;
}

void Statement::bind_blob(int parameter, std::string_view bytes) {
  const char* data = bytes.data() == nullptr ? "" : bytes.data();
  const int code = sqlite3_bind_blob64(handle_.get(), parameter, data, bytes.size(), SQLITE_STATIC);
  if (bind_code_ == SQLITE_OK) bind_code_ = code;
}

Result<bool> Statement::step() {
  const int code = bind_code_ == SQLITE_OK ? sqlite3_step(handle_.get()) : bind_code_;
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return to_error(sqlite3_db_handle(handle_.get()), code, "use");
}

Result<void> Statement::run() {
  const ResetAtEnd reset(*this);
  if (Result<bool> stepped = step(); !stepped) return std::move(stepped).error();
  return {};
}

void Statement::reset() {
  (void)sqlite3_reset(handle_.get());  // repeats the error of the last step
  (void)sqlite3_clear_bindings(handle_.get());
  bind_code_ = SQLITE_OK;
}

std::int64_t Statement::number(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}

std::string Statement::text(int column) const {
  const unsigned char* data = sqlite3_column_text(handle_.get(), column);
  const int bytes = sqlite3_column_bytes(handle_.get(), column);
  if (data == nullptr || bytes <= 0) return {};
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(bytes)};
}

std::string Statement::blob(int column) const {
  const void* data = sqlite3_column_blob(handle_.get(), column);
  const int bytes = sqlite3_column_bytes(handle_.get(), column);
  if (data == nullptr || bytes <= 0) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(bytes)};
}

Result<Connection> Connection::open(const std::string& path) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(
      path.c_str(), &handle,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  Connection connection(handle);  // closed after a failure too
  if (code != SQLITE_OK) return to_error(handle, code, "open").within(path);
  return connection;
}

Result<void> Connection::run(const char* sql) {
  const int code = sqlite3_exec(get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return to_error(get(), code, "use");
  return {};
}

Result<Statement> Connection::prepare(std::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  const int code = sqlite3_prepare_v3(get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  if (code != SQLITE_OK) return to_error(get(), code, "use");
  return Statement(handle);
}

namespace {

Result<Statement> first_row(Connection& connection, std::string_view sql) {
  Result<Statement> statement = connection.prepare(sql);
  if (!statement) return statement;
  Result<bool> row = statement->step();
  if (!row) return std::move(row).error();
  if (!*row) return to_error(connection.get(), SQLITE_CORRUPT, "use");
  return statement;
}

}  // namespace

Result<std::int64_t> Connection::number(std::string_view sql) {
  Result<Statement> row = first_row(*this, sql);
  if (!row) return std::move(row).error();
  return row->number(0);
}

Result<std::string> Connection::text(std::string_view sql) {
  Result<Statement> row = first_row(*this, sql);
  if (!row) return std::move(row).error();
  return row->text(0);
}

Result<Transaction> Transaction::begin(Connection& connection) {
  if (Result<void> begun = connection.run("BEGIN IMMEDIATE"); !begun)
    return std::move(begun).error();
  return Transaction(connection);
}

Transaction::~Transaction() {
  // Some failures have rolled it back already; rolling back an open one needs no room on the disk.
  if (connection_ == nullptr || sqlite3_get_autocommit(connection_->get()) != 0) return;
  Result<void> undone = connection_->run("ROLLBACK");
  METE_ASSERT(undone || sqlite3_get_autocommit(connection_->get()) != 0);
}

Result<void> Transaction::commit() {
  if (Result<void> done = connection_->run("COMMIT"); !done) return done;
  connection_ = nullptr;
  return {};
}

}  // namespace mete::store
