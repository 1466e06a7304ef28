/* see ipc_io.h */
