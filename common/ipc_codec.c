/* see ipc_codec.h */
