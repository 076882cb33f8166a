// libpq, loaded when the first PostgreSQL database is opened. Linked in, it brings twenty more
// libraries (LDAP, Kerberos, TLS) into every program and every trial at its start: half of the
// time `kolo report` takes, for those who use SQLite.
#pragma once

#include <libpq-fe.h>

namespace kolo::store {

/// A library of the system, open until the program ends.
class SystemLibrary {
 public:
  /// Throws not_found, saying which package has it.
  SystemLibrary(const char* file, const char* package);

  /// A function of it, of whatever type it is asked for.
  class Symbol {
   public:
    explicit Symbol(void* address) : address_(address) {}
    template <class Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor): the place says the type
      return reinterpret_cast<Function*>(address_);
    }

   private:
    void* address_;
  };
  Symbol operator[](const char* name) const;

 private:
  const char* file_;
  void* handle_;
};

/// The functions of libpq that kolo calls.
struct Libpq {
  SystemLibrary library{"libpq.so.5", "libpq5"};
  decltype(&::PQclear) clear = library["PQclear"];
  decltype(&::PQcmdTuples) cmd_tuples = library["PQcmdTuples"];
  decltype(&::PQconninfoFree) conninfo_free = library["PQconninfoFree"];
  decltype(&::PQconninfoParse) conninfo_parse = library["PQconninfoParse"];
  decltype(&::PQconnectPoll) connect_poll = library["PQconnectPoll"];
  decltype(&::PQconnectStartParams) connect_start_params = library["PQconnectStartParams"];
  decltype(&::PQconsumeInput) consume_input = library["PQconsumeInput"];
  decltype(&::PQerrorMessage) error_message = library["PQerrorMessage"];
  decltype(&::PQfinish) finish = library["PQfinish"];
  decltype(&::PQflush) flush = library["PQflush"];
  decltype(&::PQfreemem) freemem = library["PQfreemem"];
  decltype(&::PQgetisnull) getisnull = library["PQgetisnull"];
  decltype(&::PQgetlength) getlength = library["PQgetlength"];
  decltype(&::PQgetResult) get_result = library["PQgetResult"];
  decltype(&::PQgetvalue) getvalue = library["PQgetvalue"];
  decltype(&::PQhost) host = library["PQhost"];
  decltype(&::PQisBusy) is_busy = library["PQisBusy"];
  decltype(&::PQlibVersion) lib_version = library["PQlibVersion"];
  decltype(&::PQparameterStatus) parameter_status = library["PQparameterStatus"];
  decltype(&::PQnotifies) notifies = library["PQnotifies"];
  decltype(&::PQntuples) ntuples = library["PQntuples"];
  decltype(&::PQputCopyData) put_copy_data = library["PQputCopyData"];
  decltype(&::PQputCopyEnd) put_copy_end = library["PQputCopyEnd"];
  decltype(&::PQresultErrorField) result_error_field = library["PQresultErrorField"];
  decltype(&::PQresultErrorMessage) result_error_message = library["PQresultErrorMessage"];
  decltype(&::PQresultStatus) result_status = library["PQresultStatus"];
  decltype(&::PQsendPrepare) send_prepare = library["PQsendPrepare"];
  decltype(&::PQsendQuery) send_query = library["PQsendQuery"];
  decltype(&::PQsendQueryPrepared) send_query_prepared = library["PQsendQueryPrepared"];
  decltype(&::PQsetnonblocking) set_nonblocking = library["PQsetnonblocking"];
  decltype(&::PQsetNoticeProcessor) set_notice_processor = library["PQsetNoticeProcessor"];
  decltype(&::PQsocket) socket = library["PQsocket"];
  decltype(&::PQstatus) status = library["PQstatus"];
};

/// Loads it at the first call. Throws not_found.
const Libpq& libpq();

}  // namespace kolo::store
