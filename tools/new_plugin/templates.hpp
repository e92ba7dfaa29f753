// The files of a new plugin's project in each language. @NAME@ stands for its name, @CLASS@ and @IDENTIFIER@ for the names
// of a class and of a library, both derived from it.
#pragma once
#include <string>
#include <vector>

namespace plugrad::tool {

struct TemplateFile {
  std::string language, path, text;
};
const std::vector<TemplateFile>& plugin_templates();

}  // namespace plugrad::tool
