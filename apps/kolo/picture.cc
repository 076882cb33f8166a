#include "picture.h"

#include <chrono>
#include <optional>
#include <vector>

#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/subprocess.h"

namespace kolo::app {
namespace {

using namespace std::chrono_literals;

/// A program that turns the first of these files into the second, with its arguments.
std::optional<std::vector<std::string>> converter(const std::string& svg, const std::string& png) {
  const std::vector<std::vector<std::string>> known = {
      {"rsvg-convert", "-o", png, svg},
      {"inkscape", "--export-type=png", "--export-filename=" + png, svg},
      {"magick", svg, png},
  };
  for (const auto& command : known) {
    try {
      static_cast<void>(find_program(command[0], environment("PATH").value_or("")));
      return command;
    } catch (const Error&) {
      // the next one
    }
  }
  return std::nullopt;
}

}  // namespace

void write_picture(const std::string& file, const std::string& svg) {
  if (!file.ends_with(".png")) {
    write_output_file(file, svg);
    return;
  }
  const TempDir scratch("kolo-picture");
  const auto from = (scratch.path() / "picture.svg").string();
  const auto to = (scratch.path() / "picture.png").string();
  const auto command = converter(from, to);
  if (!command)
    throw_error(ErrorCode::unavailable,
                "{}: a PNG is made by rsvg-convert, inkscape or magick, and none of them is here; "
                "install one (librsvg2-bin has the smallest), or write FILE.svg",
                file);
  write_file_atomically(from, svg);
  const auto made = run_command(*command, Deadline::after(60s));
  if (!made.ok())
    throw_error(ErrorCode::internal, "{}: {} failed: {}", file, command->front(), made.errors);
  write_output_file(file, read_file(to));
}

}  // namespace kolo::app
