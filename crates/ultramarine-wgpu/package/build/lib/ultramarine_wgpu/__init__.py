"""The Vulkan backend of Ultramarine. There is nothing to call: the library beside this file is found through the package's
entry point, and this module is not even imported for that."""
