"""Where ONNX Runtime keeps its exceptions."""
