#include <core/io/onnx/messages.hpp>

namespace plugrad::io::onnx {
namespace {

// Calls read_field(number) for each field of the message that comes next, and skips the fields that it does not know.
template <class F> void each_field(WireReader& in, F read_field) {
  in.message([&] {
    if (!read_field(in.field())) in.skip();
  });
}

void read_entry(WireReader& in, std::pair<std::string, std::string>& entry) {
  each_field(in, [&](uint64_t field) {
    if (field == 1) entry.first = in.text();
    else if (field == 2) entry.second = in.text();
    else return false;
    return true;
  });
}

bool read_tensor_field(WireReader& in, TensorMessage& tensor) {
  switch (in.field()) {
    case 1: in.integers(tensor.dims); return true;
    case 2: tensor.type = in.integer(); return true;
    case 4: in.reals(tensor.floats); return true;
    case 5:
    case 7:
    case 11: in.integers(tensor.integers); return true;
    case 6: ++tensor.strings; return false;
    case 8: tensor.name = in.text(); return true;
    case 9: tensor.raw = in.place(); return true;
    case 10: in.reals(tensor.doubles); return true;
    case 13: read_entry(in, tensor.external_data.emplace_back()); return true;
    case 14: tensor.external = in.integer() != 0; return true;
    default: return false;
  }
}

void read_tensor(WireReader& in, TensorMessage& tensor) {
  each_field(in, [&](uint64_t) { return read_tensor_field(in, tensor); });
}

void read_extent(WireReader& in, TypeMessage::Extent& extent) {
  each_field(in, [&](uint64_t field) {
    if (field == 1) extent.value = in.integer();
    else if (field == 2) extent.symbol = in.text();
    else return false;
    return true;
  });
}

void read_shape(WireReader& in, TypeMessage& type) {
  type.has_shape = true;
  each_field(in, [&](uint64_t field) {
    if (field != 1) return false;
    read_extent(in, type.shape.emplace_back());
    return true;
  });
}

void read_type(WireReader& in, TypeMessage& type) {
  using Kind = TypeMessage::Kind;
  each_field(in, [&](uint64_t kind) {
    if (kind != 1 && kind != 4 && kind != 9) {
      if (kind == 5 || kind == 7 || kind == 8) type.kind = Kind::other;
      return false;
    }
    type.kind = kind == 1 ? Kind::tensor : kind == 4 ? Kind::sequence : Kind::optional;
    each_field(in, [&](uint64_t field) {
      if (kind == 1 && field == 1) type.element = in.integer();
      else if (kind == 1 && field == 2) read_shape(in, type);
      else if (kind != 1 && field == 1) read_type(in, type.inner.emplace_back());
      else return false;
      return true;
    });
    return true;
  });
}

void read_value(WireReader& in, ValueMessage& value) {
  each_field(in, [&](uint64_t field) {
    if (field == 1) value.name = in.text();
    else if (field == 2) read_type(in, value.type);
    else return false;
    return true;
  });
}

void read_graph(WireReader& in, GraphMessage& graph);

void read_attribute(WireReader& in, AttributeMessage& attribute) {
  each_field(in, [&](uint64_t field) {
    switch (field) {
      case 1: attribute.name = in.text(); return true;
      case 2: attribute.real = in.real(); return true;
      case 3: attribute.integer = in.integer(); return true;
      case 4: attribute.text = in.text(); return true;
      case 5:
      case 10: read_tensor(in, attribute.tensors.emplace_back()); return true;
      case 6:
      case 11: read_graph(in, attribute.graphs.emplace_back()); return true;
      case 7: in.reals(attribute.reals); return true;
      case 8: in.integers(attribute.integers); return true;
      case 9: attribute.texts.push_back(in.text()); return true;
      case 21: attribute.reference = in.text(); return true;
      case 22:
      case 23: attribute.sparse = true; return false;
      default: return false;
    }
  });
  if (attribute.name.empty()) in.fail("an attribute has no name");
}

void read_node(WireReader& in, NodeMessage& node) {
  each_field(in, [&](uint64_t field) {
    switch (field) {
      case 1: node.inputs.push_back(in.text()); return true;
      case 2: node.outputs.push_back(in.text()); return true;
      case 3: node.name = in.text(); return true;
      case 4: node.op = in.text(); return true;
      case 5: read_attribute(in, node.attributes.emplace_back()); return true;
      case 7: node.domain = in.text(); return true;
      case 8: node.overload = in.text(); return true;
      default: return false;
    }
  });
  if (node.op.empty()) in.fail("a node has no operator");
}

void read_graph(WireReader& in, GraphMessage& graph) {
  each_field(in, [&](uint64_t field) {
    switch (field) {
      case 1: read_node(in, graph.nodes.emplace_back()); return true;
      case 2: graph.name = in.text(); return true;
      case 5: read_tensor(in, graph.initializers.emplace_back()); return true;
      case 11: read_value(in, graph.inputs.emplace_back()); return true;
      case 12: read_value(in, graph.outputs.emplace_back()); return true;
      case 15: graph.sparse = true; return false;
      default: return false;
    }
  });
}

void read_opset(WireReader& in, OpsetMessage& opset) {
  each_field(in, [&](uint64_t field) {
    if (field == 1) opset.domain = in.text();
    else if (field == 2) opset.version = in.integer();
    else return false;
    return true;
  });
}

void read_function(WireReader& in, FunctionMessage& function) {
  each_field(in, [&](uint64_t field) {
    switch (field) {
      case 1: function.name = in.text(); return true;
      case 4: function.inputs.push_back(in.text()); return true;
      case 5: function.outputs.push_back(in.text()); return true;
      case 7: read_node(in, function.nodes.emplace_back()); return true;
      case 9: read_opset(in, function.opsets.emplace_back()); return true;
      case 10: function.domain = in.text(); return true;
      case 11: read_attribute(in, function.defaults.emplace_back()); return true;
      case 13: function.overload = in.text(); return true;
      default: return false;
    }
  });
}

bool read_model_field(WireReader& in, ModelMessage& model) {
  switch (in.field()) {
    case 7: read_graph(in, model.graph); return true;
    case 8: read_opset(in, model.opsets.emplace_back()); return true;
    case 25: read_function(in, model.functions.emplace_back()); return true;
    default: return false;
  }
}
}  // namespace

ModelMessage read_model_message(const OpenedFile& file) {
  ModelMessage model;
  WireReader in(file);
  while (in.next())
    if (!read_model_field(in, model)) in.skip();
  if (model.graph.nodes.empty() && model.graph.outputs.empty()) in.fail("there is no graph");
  return model;
}

TensorMessage read_tensor_message(const OpenedFile& file) {
  TensorMessage tensor;
  WireReader in(file);
  while (in.next())
    if (!read_tensor_field(in, tensor)) in.skip();
  return tensor;
}

ListMessage read_list_message(const OpenedFile& file, bool optional) {
  ListMessage list;
  list.is_sequence = !optional;
  WireReader in(file);
  while (in.next()) {
    if (in.field() == 3) {
      read_tensor(in, list.tensors.emplace_back());
    } else if (optional && in.field() == 5) {
      list.is_sequence = true;
      each_field(in, [&](uint64_t field) {
        if (field != 3) return false;
        read_tensor(in, list.tensors.emplace_back());
        return true;
      });
    } else {
      in.skip();
    }
  }
  return list;
}

}  // namespace plugrad::io::onnx
