// Pictures as files, in the form that their names ask for.
#pragma once

#include <string>

namespace kolo::app {

/// Writes an SVG document to FILE.svg, or as a PNG to FILE.png with a program that draws SVG.
/// Throws unavailable if there is none on this machine.
void write_picture(const std::string& file, const std::string& svg);

}  // namespace kolo::app
