// The one exception of the runtime. Loading, binding and running throw it; the C API and ds-run turn it into a status
// or a one-line diagnostic. It never crosses the C API nor the frames of compiled code.
#ifndef DEEPSTRIDE_RUNTIME_CORE_ERROR_H
#define DEEPSTRIDE_RUNTIME_CORE_ERROR_H

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds {

enum class ErrorCode {
  InvalidArgument = 1,  // a caller's or user's argument that names nothing or has no meaning
  UnboundDimension = 2, // a dimension that no input and no pin gives
  BadFile = 3,          // a file that is damaged, truncated or not of its format
  BadPackage = 4,       // a package that breaks its format or its checksums
  UnsupportedCpu = 5,   // no variant of the package fits this processor
  ShapeMismatch = 6,    // inputs that do not fit the signature or a constraint
  Execution = 7,        // compiled code reported an error
  Collective = 8,       // a rank is missing, failed or asks for something else
  OutOfMemory = 9,
  Io = 10,       // the operating system refused
  Internal = 11, // a bug of ours
  BadState = 12, // a state that a failed call or restore may have left half written
  Cancelled = 13 // somebody asked for the end of the call
};

class Error : public std::runtime_error {
public:
  Error(ErrorCode code, std::string message) : std::runtime_error(message), code(code), text(std::move(message)) {}

  ErrorCode getCode() const { return code; }
  const char *what() const noexcept override { return text.c_str(); }

  // Says where, on the way up: the annotation comes before what is known so far.
  void annotate(const std::string &where) { text = where + ": " + text; }

private:
  ErrorCode code;
  std::string text;
};

template <typename... Parts> std::string concat(const Parts &...parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <typename... Parts> [[noreturn]] void fail(ErrorCode code, const Parts &...parts) {
  throw Error(code, concat(parts...));
}

// "[2, 3]", as shapes appear in every message.
template <typename Values> std::string listText(const Values &values) {
  std::ostringstream out;
  const char *separator = "";
  out << '[';
  for (const auto &value : values) {
    out << separator << value;
    separator = ", ";
  }
  out << ']';
  return out.str();
}

// Runs an action and puts "where: " before the message of any error that it throws.
template <typename Action> auto annotated(const std::string &where, Action action) -> decltype(action()) {
  try {
    return action();
  } catch (Error &error) {
    error.annotate(where);
    throw;
  }
}

} // namespace ds
#endif
