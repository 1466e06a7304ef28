/* see ipc_peer.h */
