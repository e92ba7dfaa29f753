// The files of a new plugin's project, with @NAME@ and @CLASS@ in the places of its name.
#pragma once
#include <string>
#include <vector>

namespace plugrad::tool {

struct TemplateFile {
  std::string path, text;
};
const std::vector<TemplateFile>& plugin_template();

}  // namespace plugrad::tool
