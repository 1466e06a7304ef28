/*
 * Every message between the suite's processes, described once.
 *
 * M(number, UPPER, lower, kind, senders, receivers, state, max_blob, doc)
 *   kind      REQ: wants an answer with the same request id; ANS: the final
 *             answer; PART: an answer, with more to follow; EVT: unasked for
 *   senders   roles that may send it, receivers: roles that may get it; the
 *             role of a peer follows from the socket it came by, never from a
 *             field
 *   state     of the connection: NEW (nothing but HELLO), OPEN (after HELLO);
 *             on a runner's channel WAITING (before READY), RUNNING (after it)
 *   max_blob  bytes its one blob field may hold (0: it has none)
 * F(S, type, name, doc) lists the fields in wire order (S is the struct's tag):
 *   u8 u16 u32 u64 (big endian), id (16 bytes), hash (32 bytes), str (UTF-8
 *   without NUL, u32 length), bytes (u32 length), blob (like bytes, or a
 *   sealed memfd when the frame would grow past IPC_FRAME_MAX; at most one a
 *   message), fd (a descriptor; nothing in the payload)
 *
 * The enum, the structs, the codec, the permission check, the limits and
 * docs/PROTOCOL.md all come from here. Its SHA-256 is in every HELLO.
 */
#ifndef IPC_TABLE_H
#define IPC_TABLE_H

/* clang-format off */
#define IPC_MESSAGES(M)                                                        \
M(1, HELLO, hello, EVT, ANY, ANY, NEW, 0, "first frame in each direction")     \
M(2, REFUSED, refused, ANS, ANY, ANY, OPEN, 0, "a request could not be served") \
M(3, OK, ok, ANS, ANY, ANY, OPEN, 0, "a request without a result was served")  \
M(4, DOCTOR, doctor, REQ, CTL, ADMIND|VAULT|SANDBOXD, OPEN, 0, "asks which layers hold") \
M(5, DOCTOR_REPORT, doctor_report, ANS, ADMIND|VAULT|SANDBOXD, CTL, OPEN, IPC_BLOB_MAX, "the layers, as JSON") \
                                                                               \
M(10, GW_ATTACH, gw_attach, REQ, GATEWAY, ADMIND, OPEN, 0, "a gateway asks for its set-up") \
M(11, GW_CONFIG, gw_config, ANS, ADMIND, GATEWAY, OPEN, 0, "the set-up")       \
M(12, AUTHENTICATE, authenticate, REQ, GATEWAY, ADMIND, OPEN, 0, "who is this?") \
M(13, IDENTITY, identity, ANS, ADMIND, GATEWAY, OPEN, 0, "a principal")        \
M(14, CATALOGUE_GET, catalogue_get, REQ, GATEWAY, ADMIND, OPEN, 0, "asks for the tools of a permission set") \
M(15, CATALOGUE_ITEM, catalogue_item, PART, ADMIND, GATEWAY, OPEN, IPC_BLOB_MAX, "one tool, in list order") \
M(16, CATALOGUE_END, catalogue_end, ANS, ADMIND, GATEWAY, OPEN, 0, "the catalogue is whole: swap it in") \
M(17, CATALOGUE_CHANGED, catalogue_changed, REQ, ADMIND, GATEWAY, OPEN, 0, "cached catalogues are stale; answered by OK once dropped") \
M(18, AUTHORISE, authorise, REQ, GATEWAY, ADMIND, OPEN, IPC_BLOB_MAX, "one tools/call; answered by RUN_ID, RESULT, TASK_STATE, PENDING or REFUSED") \
M(19, RUN_ID, run_id, ANS, ADMIND, GATEWAY, OPEN, 0, "run it at the sandbox by this id, once") \
M(20, RESULT, result, ANS, ADMIND, GATEWAY, OPEN, RESULT_MAX, "a management tool's result") \
M(21, SESSION_END, session_end, REQ, GATEWAY, ADMIND, OPEN, 0, "a client deleted its session") \
M(22, SESSION_ENDED, session_ended, EVT, ADMIND, GATEWAY, OPEN, 0, "refuse this session id from now on") \
M(23, TASK_STATE, task_state, ANS, ADMIND, GATEWAY, OPEN, IPC_BLOB_MAX, "a task as it stands: answers TASK_GET, TASK_UPDATE, TASK_CANCEL, and AUTHORISE of a call that became one") \
M(24, TASK_GET, task_get, REQ, GATEWAY, ADMIND, OPEN, 0, "asks how a task stands") \
M(25, TASK_UPDATE, task_update, REQ, GATEWAY, ADMIND, OPEN, ARGUMENTS_MAX, "answers to what a task asked of its client") \
M(26, TASK_CANCEL, task_cancel, REQ, GATEWAY, ADMIND, OPEN, 0, "ends a task") \
M(27, TASK_CHANGED, task_changed, EVT, ADMIND, GATEWAY, OPEN, 0, "a task changed its state") \
M(28, PENDING, pending, ANS, ADMIND, GATEWAY, OPEN, 0, "answers AUTHORISE of a call that waits for a person") \
M(29, DECIDED, decided, EVT, ADMIND, GATEWAY, OPEN, 0, "a person decided about a waiting call") \
                                                                               \
M(30, RUN, run, REQ, GATEWAY|ADMIND, SANDBOXD, OPEN, ARGUMENTS_MAX, "use a held context, once") \
M(31, CALL_EVENT, call_event, PART, SANDBOXD, GATEWAY|ADMIND, OPEN, 0, "progress, log line or question while it runs") \
M(32, CALL_RESULT, call_result, ANS, SANDBOXD, GATEWAY|ADMIND, OPEN, IPC_BLOB_MAX, "how the call ended") \
M(33, CANCEL, cancel, EVT, GATEWAY|ADMIND, SANDBOXD, OPEN, 0, "kill a held or running call; its record says killed") \
M(34, CALL_ANSWER, call_answer, EVT, GATEWAY|ADMIND, SANDBOXD, OPEN, ARGUMENTS_MAX, "what the client answered to a question of a running call; only from who runs it") \
M(35, ATTACH, attach, REQ, ADMIND, SANDBOXD, OPEN, 0, "be told of a call that admind runs, after a reconnection; answered as RUN is") \
                                                                               \
M(40, HELD, held, REQ, ADMIND, SANDBOXD, OPEN, IPC_BLOB_MAX, "keep this sealed context until RUN; answered by OK or REFUSED") \
M(41, RECORD, record, REQ, SANDBOXD, ADMIND, OPEN, IPC_BLOB_MAX, "how a call ended; resent until answered by OK, which follows the commit") \
M(42, EPOCH_BEGIN, epoch_begin, EVT, SANDBOXD, ADMIND, OPEN, 0, "first on each connection: the sandbox's epoch") \
M(43, EPOCH_ITEM, epoch_item, EVT, SANDBOXD, ADMIND, OPEN, 0, "an execution this sandbox still answers for") \
M(44, EPOCH_END, epoch_end, EVT, SANDBOXD, ADMIND, OPEN, 0, "all were named: the sweep may run") \
M(45, RESULT_CHECK, result_check, REQ, SANDBOXD, ADMIND, OPEN, IPC_BLOB_MAX, "does this structured content satisfy the version's outputSchema? answered by OK, RESULT_ERRORS or REFUSED") \
M(46, RESULT_ERRORS, result_errors, ANS, ADMIND, SANDBOXD, OPEN, RESULT_MAX, "it does not: all errors together") \
                                                                               \
M(60, SEAL_CONTEXT, seal_context, REQ, ADMIND, VAULT, OPEN, IPC_BLOB_MAX, "seal an execution context for a sandbox's epoch") \
M(61, SEALED, sealed, ANS, VAULT, ADMIND, OPEN, IPC_BLOB_MAX, "the sealed context") \
M(62, CONTENT_GET, content_get, REQ, VAULT, ADMIND, OPEN, 0, "the full content behind an approval request") \
M(63, CONTENT, content, ANS, ADMIND, VAULT, OPEN, IPC_BLOB_MAX, "its hash pre-image") \
M(64, DECISION_STORE, decision_store, REQ, VAULT, ADMIND, OPEN, IPC_BLOB_MAX, "commit a decision; answered by OK or REFUSED") \
M(65, SESSION_LOOKUP, session_lookup, REQ, ADMIND, VAULT, OPEN, 0, "is this a live login?") \
M(66, SESSION_INFO, session_info, ANS, VAULT, ADMIND|WEB, OPEN, 0, "a live login") \
M(67, ADMIN_LOOKUP, admin_lookup, REQ, VAULT, ADMIND, OPEN, 0, "the stored verifier of an administrator") \
M(68, ADMIN_RECORD, admin_record, ANS, ADMIND, VAULT, OPEN, IPC_BLOB_MAX, "the verifier; empty for an unknown user") \
M(69, ADMIN_STORE, admin_store, REQ, VAULT, ADMIND, OPEN, IPC_BLOB_MAX, "commit a verifier; answered by OK or REFUSED") \
M(70, SECRET_STORE, secret_store, REQ, VAULT, ADMIND, OPEN, IPC_BLOB_MAX, "commit an encrypted secret; answered by OK or REFUSED") \
M(71, AUDIT_SIGN, audit_sign, REQ, ADMIND, VAULT, OPEN, 0, "sign the head of the audit chain") \
M(72, AUDIT_SIGNATURE, audit_signature, ANS, VAULT, ADMIND, OPEN, 0, "the signature") \
M(73, AUDIT_EVENT, audit_event, REQ, VAULT, ADMIND, OPEN, 0, "write a login, log-out or refusal to the audit log; answered by OK") \
M(74, SESSION_KEY_GET, session_key_get, REQ, ADMIND, VAULT, OPEN, 0, "the key that MACs MCP session tokens; conveys nothing") \
M(75, SESSION_KEY, session_key, ANS, VAULT, ADMIND, OPEN, 0, "that key") \
M(76, CONTEXT_KEY_GET, context_key_get, REQ, SANDBOXD, VAULT, OPEN, 0, "a fresh context key for this sandbox's epoch") \
M(77, CONTEXT_KEY, context_key, ANS, VAULT, SANDBOXD, OPEN, 0, "that key; earlier ones of this epoch end") \
                                                                               \
M(80, LOGIN, login, REQ, WEB, VAULT, OPEN, 0, "verify a password")             \
M(81, LOGIN_OK, login_ok, ANS, VAULT, WEB, OPEN, 0, "a new login")             \
M(82, LOGOUT, logout, REQ, WEB, VAULT, OPEN, 0, "end a login; answered by OK") \
M(83, WHOAMI, whoami, REQ, WEB, VAULT, OPEN, 0, "is this token a live login?") \
M(84, APPROVE, approve, REQ, WEB|CTL, VAULT, OPEN, 0, "approve what has this hash; answered by OK or REFUSED") \
M(85, REJECT, reject, REQ, WEB|CTL, VAULT, OPEN, 0, "reject a request; answered by OK or REFUSED") \
M(86, PASSWORD, password, REQ, WEB, VAULT, OPEN, 0, "change one's own password; ends the other logins") \
M(87, SETUP, setup, REQ, CTL, VAULT, OPEN, 0, "make the first administrator; answered by OK or REFUSED") \
M(88, SECRET_SET, secret_set, REQ, WEB|CTL, VAULT, OPEN, 0, "set a secret's value; answered by OK or REFUSED") \
                                                                               \
M(100, ADMIN_QUERY, admin_query, REQ, WEB|CTL, ADMIND, OPEN, 0, "read one list or one object") \
M(101, ADMIN_JSON, admin_json, ANS, ADMIND, WEB|CTL, OPEN, IPC_BLOB_MAX, "it, as JSON") \
M(102, APPROVAL_GET, approval_get, REQ, WEB|CTL, ADMIND, OPEN, 0, "the whole content of an approval request") \
M(103, APPROVAL_CONTENT, approval_content, ANS, ADMIND, WEB|CTL, OPEN, IPC_BLOB_MAX, "its hash pre-image and circumstances") \
                                                                               \
M(121, CHECK_ARGUMENTS, check_arguments, REQ, ADMIND, CHECK, OPEN, IPC_BLOB_MAX, "do these arguments satisfy this schema?") \
M(122, CHECK_MANAGEMENT, check_management, REQ, ADMIND, CHECK, OPEN, ARGUMENTS_MAX, "validate and take apart a management tool's arguments") \
M(123, CHECK_OK, check_ok, ANS, CHECK, ADMIND, OPEN, IPC_BLOB_MAX, "valid; typed fields where asked for") \
M(124, CHECK_ERRORS, check_errors, ANS, CHECK, ADMIND, OPEN, RESULT_MAX, "invalid: all errors together") \
M(125, CHECK_INSPECTION, check_inspection, REQ, ADMIND, CHECK, OPEN, RESULT_MAX, "take apart a runner's inspection result (foreign JSON)") \
M(126, CHECK_COMMAND, check_command, REQ, ADMIND, CHECK, OPEN, IPC_BLOB_MAX, "is this a command, and does the schema name its placeholders?") \
M(127, CHECK_RENDER, check_render, REQ, ADMIND, CHECK, OPEN, IPC_BLOB_MAX, "fill a static prompt's placeholders; CHECK_OK carries the result object") \
M(128, CHECK_HTTP, check_http, REQ, ADMIND, CHECK, OPEN, IPC_BLOB_MAX, "is this a declared REST call? CHECK_OK carries what follows from it: enum inspection_field") \
M(129, CHECK_OPENAPI, check_openapi, REQ, ADMIND, CHECK, OPEN, IPC_BLOB_MAX, "an OpenAPI document as declared REST calls; CHECK_OK carries enum openapi_field") \
                                                                               \
M(140, POOL_START, pool_start, REQ, SANDBOXD, SPAWN, OPEN, 0, "start a pool; a running one ends first") \
M(141, POOL_STARTED, pool_started, ANS, SPAWN, SANDBOXD, OPEN, 0, "the socket to its pool-init") \
M(142, STORE_PUT, store_put, REQ, SANDBOXD, STORE, OPEN, 0, "the next bytes of a tree for the module store (sandboxd/store/tree.h); answered by OK, STORED behind the last, or REFUSED") \
M(143, STORED, stored, ANS, STORE, SANDBOXD, OPEN, 0, "the tree is an entry of the store") \
M(144, STORE_DROP, store_drop, EVT, SANDBOXD, STORE, OPEN, 0, "what came of this tree so far is wanted no more") \
M(145, STORE_ASK, store_ask, REQ, ADMIND|SANDBOXD, SANDBOXD|STORE, OPEN, 0, "which of these entries are in this node's store?") \
M(146, STORE_SAYS, store_says, ANS, SANDBOXD|STORE, ADMIND|SANDBOXD, OPEN, 0, "those that are") \
M(147, MODULE_STORED, module_stored, PART, SANDBOXD, ADMIND, OPEN, 0, "of a run of kind MODULE, before its result: what the store took") \
M(150, FORK, fork, EVT, SANDBOXD|POOL, POOL|ZYGOTE, OPEN, 0, "fork a runner for this slot") \
M(151, FORKED, forked, EVT, ZYGOTE, POOL, OPEN, 0, "the runner's pidfd")       \
M(152, FORK_FAILED, fork_failed, EVT, ZYGOTE|POOL, POOL|SANDBOXD, OPEN, 0, "no runner: step and errno") \
M(153, KILL, kill, EVT, SANDBOXD, POOL, OPEN, 0, "SIGKILL the runner of this slot and generation") \
M(154, EXITED, exited, EVT, POOL, SANDBOXD, OPEN, 0, "the runner was reaped")  \
M(155, POOL_REPORT, pool_report, EVT, POOL|ZYGOTE|PEEK, SANDBOXD|POOL, OPEN, 0, "a zygote, or peek, is ready: which layers hold in the pool") \
M(156, RECYCLE, recycle, EVT, SANDBOXD, POOL, OPEN, 0, "start another zygote; once it reported it gets the FORKs and the old one ends") \
M(157, LEAF, leaf, EVT, POOL, ZYGOTE, OPEN, 0, "the cgroup of a slot, once: FORKs for it are born there") \
M(158, LIMIT, limit, EVT, SANDBOXD, POOL, OPEN, 0, "other limits than FORK's for the cgroup of this slot; before EXECUTE") \
M(159, LIMITED, limited, EVT, POOL, SANDBOXD, OPEN, 0, "they hold, or why not") \
                                                                               \
M(161, READY, ready, EVT, RUNNER, SANDBOXD, WAITING, 0, "wholly confined; it waits for its call") \
M(162, CONFINE_FAILED, confine_failed, EVT, RUNNER, SANDBOXD, WAITING, 0, "a step failed; the runner exits") \
M(163, EXECUTE, execute, EVT, SANDBOXD, RUNNER, RUNNING, IPC_BLOB_MAX, "limits first, then what to do, with the code") \
M(164, ARGUMENTS, arguments, EVT, SANDBOXD, RUNNER, RUNNING, ARGUMENTS_MAX, "the call's arguments") \
M(165, SECRETS, secrets, EVT, SANDBOXD, RUNNER, RUNNING, IPC_BLOB_MAX, "the call's secrets, then it starts") \
M(166, ANSWER, answer, EVT, SANDBOXD, RUNNER, RUNNING, ARGUMENTS_MAX, "what the client answered to an ASK") \
M(167, MODULE_PART, module_part, EVT, RUNNER, SANDBOXD, RUNNING, 0, "kind MODULE: the next bytes of the unpacked tree; the next one only after MODULE_NEXT") \
M(168, MODULE_NEXT, module_next, EVT, SANDBOXD, RUNNER, RUNNING, 0, "they were taken, or why not; behind the last: what the store holds now") \
M(170, STDOUT, stdout, EVT, RUNNER, SANDBOXD, RUNNING, 0, "bytes the tool printed") \
M(171, LOG, log, EVT, RUNNER, SANDBOXD, RUNNING, 0, "a log line of the tool")  \
M(172, PROGRESS, progress, EVT, RUNNER, SANDBOXD, RUNNING, 0, "a progress report") \
M(173, CONTENT_PART, content_part, EVT, RUNNER, SANDBOXD, RUNNING, 0, "a piece of the result or error, in order") \
M(174, RUN_RESULT, run_result, EVT, RUNNER, SANDBOXD, RUNNING, 0, "the pieces were a result; nothing follows") \
M(175, RUN_ERROR, run_error, EVT, RUNNER, SANDBOXD, RUNNING, 0, "the pieces were an error object; nothing follows") \
M(176, ASK, ask, EVT, RUNNER, SANDBOXD, RUNNING, 0, "questions to the client; the runner is parked until ANSWER") \
M(177, PAUSE, pause, EVT, RUNNER, SANDBOXD, RUNNING, 0, "a hint: the client may wait unconnected and come back") \
                                                                               \
M(180, POLICY_SET, policy_set, REQ, WEB|CTL, VAULT, OPEN, 0, "how requests are reviewed from now on; answered by POLICY_STATE") \
M(181, POLICY_GET, policy_get, REQ, WEB|CTL, VAULT, OPEN, 0, "how are requests reviewed?") \
M(182, POLICY_STATE, policy_state, ANS, VAULT, WEB|CTL, OPEN, 0, "the policy as the vault applies it") \
M(183, POLICY_LOAD, policy_load, REQ, VAULT, ADMIND, OPEN, 0, "the newest stored policy") \
M(184, POLICY_SEALED, policy_sealed, ANS, ADMIND, VAULT, OPEN, 0, "it, sealed") \
M(185, POLICY_STORE, policy_store, REQ, VAULT, ADMIND, OPEN, 0, "commit a policy; answered by OK or REFUSED") \
M(186, APPROVE_AUTO, approve_auto, REQ, ADMIND, VAULT, OPEN, 0, "approve by the sealed policy, if it and the content allow that; answered by OK or REFUSED") \
M(187, HALF_APPROVED, half_approved, ANS, VAULT, WEB|CTL, OPEN, 0, "answers APPROVE: the first yes of two is kept") \
M(188, SEAL_VERIFY, seal_verify, REQ, WEB|CTL, VAULT, OPEN, IPC_BLOB_MAX, "is this the vault's seal over this pre-image?") \
M(189, SEAL_SAYS, seal_says, ANS, VAULT, WEB|CTL, OPEN, 0, "it is: who approved it, and when") \
                                                                               \
M(200, ADMIN_CHANGE, admin_change, REQ, WEB|CTL, VAULT, OPEN, 0, "make, change or remove an administrator; answered by OK or REFUSED") \
M(201, DEVICE_MAKE, device_make, REQ, CTL, VAULT, OPEN, 0, "a code with which a person may log in from a new browser while others guess at the name") \
M(202, DEVICE_CODE, device_code, ANS, VAULT, CTL, OPEN, 0, "that code")         \
M(203, LOGINS_GET, logins_get, REQ, WEB|CTL, VAULT, OPEN, 0, "who is logged in") \
M(204, LOGINS, logins, ANS, VAULT, WEB|CTL, OPEN, IPC_BLOB_MAX, "the logins")   \
M(205, LOGIN_END, login_end, REQ, WEB|CTL, VAULT, OPEN, 0, "end one login, or all of an administrator; answered by OK or REFUSED") \
M(206, AUDIT_READ, audit_read, REQ, CTL, ADMIND, OPEN, 0, "rows of the audit chain as they were hashed") \
M(207, AUDIT_ROWS, audit_rows, ANS, ADMIND, CTL, OPEN, IPC_BLOB_MAX, "those rows, oldest first") \
M(208, AUDIT_CHECK, audit_check, REQ, CTL, VAULT, OPEN, 0, "are these signatures of the chain's heads ours?") \
M(209, AUDIT_CHECKED, audit_checked, ANS, VAULT, CTL, OPEN, 0, "which are, and the newest that was signed") \
                                                                               \
M(210, ACTIVITY_FOLLOW, activity_follow, REQ, WEB|CTL, ADMIND, OPEN, 0, "be told what happens from now on; OK ends it, after a while: then ask again") \
M(211, ACTIVITY_LINES, activity_lines, PART, ADMIND, WEB|CTL, OPEN, 0, "what happened since the last") \
M(212, ACTIVITY_LEAVE, activity_leave, EVT, WEB|CTL, ADMIND, OPEN, 0, "nobody listens any more") \
M(213, METRICS_GET, metrics_get, REQ, WEB, ADMIND, OPEN, 0, "counters and gauges of this node, and of the database") \
M(214, METRICS, metrics, ANS, ADMIND, WEB, OPEN, IPC_BLOB_MAX, "them, in Prometheus' text format") \
                                                                               \
M(225, TOKEN_CREATE, token_create, REQ, WEB|CTL, ADMIND, OPEN, 0, "make an API token; answered by TOKEN_CREATED or REFUSED") \
M(226, TOKEN_CREATED, token_created, ANS, ADMIND, WEB|CTL, OPEN, IPC_BLOB_MAX, "a new token, said this once") \
M(227, TOKEN_REVOKE, token_revoke, REQ, WEB|CTL, ADMIND, OPEN, 0, "end a token; answered by ADMIN_JSON once every connected gateway dropped it") \
M(228, CREDENTIAL_ENDED, credential_ended, REQ, ADMIND, GATEWAY, OPEN, 0, "a credential is good no more: drop what is held for it; answered by OK once dropped") \
                                                                               \
M(190, KEY_STATUS, key_status, REQ, CTL, VAULT, OPEN, 0, "which master keys are valid?") \
M(191, KEY_STATE, key_state, ANS, VAULT, CTL, OPEN, 0, "answers KEY_STATUS, KEY_NEXT, KEY_STEP and KEY_END") \
M(192, KEY_NEXT, key_next, REQ, CTL, VAULT, OPEN, 0, "begin a rotation: this key seals from now on, the present one still opens") \
M(193, KEY_STEP, key_step, REQ, CTL, VAULT, OPEN, 0, "renew, or only open, the next values that rest under a master key") \
M(194, KEY_END, key_end, REQ, CTL, VAULT, OPEN, 0, "end the rotation: forget the older key") \
M(195, RENEW_GET, renew_get, REQ, VAULT, ADMIND, OPEN, 0, "values that rest under a master key") \
M(196, RENEW_ROWS, renew_rows, ANS, ADMIND, VAULT, OPEN, IPC_BLOB_MAX, "they") \
M(197, RENEW_STORE, renew_store, REQ, VAULT, ADMIND, OPEN, IPC_BLOB_MAX, "put these in place of those; answered by OK or REFUSED") \
M(198, RENEW_PHASE, renew_phase, REQ, VAULT, ADMIND, OPEN, 0, "note that a rotation begins or ends; answered by OK or REFUSED") \
                                                                               \
M(230, ADMIN_ACTION, admin_action, REQ, WEB|CTL, ADMIND, OPEN, ARGUMENTS_MAX, "change one thing, by one SQL function; answered by ADMIN_JSON or REFUSED") \
M(231, EXPORT_SIGN, export_sign, REQ, ADMIND|CTL, VAULT, OPEN, 0, "seal the hash of an export") \
M(232, EXPORT_SEAL, export_seal, ANS, VAULT, ADMIND|CTL, OPEN, 0, "the seal")  \
M(233, EXPORT_CHECK, export_check, REQ, ADMIND, VAULT, OPEN, 0, "is this a seal of ours over this hash? answered by OK or REFUSED") \
M(234, EXPORT, export, REQ, WEB|CTL, ADMIND, OPEN, 0, "make an export; answered by ADMIN_JSON, its head") \
M(235, IMPORT, import, REQ, WEB|CTL, ADMIND, OPEN, 0, "make drafts of what was put, all or none; answered by ADMIN_JSON or REFUSED") \
                                                                               \
M(240, NET_OPEN, net_open, REQ, SANDBOXD, EGRESS, OPEN, IPC_BLOB_MAX, "a runner begins a call that may connect; answered by OK or REFUSED") \
M(241, NET_GRANTS, net_grants, EVT, SANDBOXD, EGRESS, OPEN, IPC_BLOB_MAX, "what its server is granted from now on") \
M(242, NET_CLOSE, net_close, REQ, SANDBOXD, EGRESS, OPEN, 0, "the call is over: nothing of it connects any more") \
M(243, NET_REPORT, net_report, ANS, EGRESS, SANDBOXD, OPEN, 0, "answers NET_CLOSE: what it connected to") \
M(244, NET_EVENT, net_event, EVT, EGRESS, SANDBOXD, OPEN, 0, "a connection was refused, or a limit is used up") \
M(245, NET_CONNECT, net_connect, REQ, PEEK, EGRESS, OPEN, 0, "a runner called connect(2); answered by NET_CONNECTED or NET_FAILED") \
M(246, NET_CONNECTED, net_connected, ANS, EGRESS, PEEK, OPEN, 0, "the socket to put in place of the runner's") \
M(247, NET_FAILED, net_failed, ANS, EGRESS, PEEK, OPEN, 0, "connect(2) fails with this errno") \
M(248, PEEK_LINK, peek_link, EVT, SANDBOXD|POOL, POOL|PEEK, OPEN, 0, "peek's connection to egress, before its HELLO") \
M(249, PEEK_DOOR, peek_door, EVT, POOL, ZYGOTE|PEEK, OPEN, 0, "an end of the socket by which runners hand their listeners to peek; before all else") \
M(250, LISTENER, listener, EVT, RUNNER, PEEK, OPEN, 0, "a runner's seccomp listener, the only frame it ever sends there") \
M(251, REGRANT, regrant, REQ, ADMIND, SANDBOXD, OPEN, IPC_BLOB_MAX, "what a server is granted now, sealed by the vault: holds for the next connect of its running calls; answered by OK or REFUSED") \
M(260, SOURCE_RUN, source_run, REQ, WEB|CTL, ADMIND, OPEN, IPC_BLOB_MAX, "list, import from or authorise another MCP server; answered by ADMIN_JSON or REFUSED") \
M(261, OAUTH_CALLBACK, oauth_callback, REQ, WEB, ADMIND, OPEN, 0, "what a browser brought back from an authorization server; answered by ADMIN_JSON or REFUSED") \
M(262, CREDENTIAL_STORE, credential_store, REQ, ADMIND, VAULT, OPEN, IPC_BLOB_MAX, "keep the credential that this run of a version sealed for us; answered by OK once SECRET_STORE was") \
M(263, OPENAPI_IMPORT, openapi_import, REQ, WEB|CTL, ADMIND, OPEN, IPC_BLOB_MAX, "operations of an OpenAPI document as tools, each in the queue; answered by ADMIN_JSON or REFUSED")

#define IPC_FIELDS_hello(F, S)                                                    \
F(S, hash, table, "SHA-256 of the IPC table; another one is logged by both and the connection closed") \
F(S, str, process, "program name, for logs only")                                 \
F(S, str, build, "version, for logs only")                                        \
F(S, id, epoch, "random, new at each start of the sender")                        \
F(S, str, layers, "confinement layers that hold: name=enforced|degraded|missing lines, for doctor")
#define IPC_FIELDS_refused(F, S)                                                  \
F(S, u16, failure, "enum failure")                                                \
F(S, str, message, "one sentence for the reader")                                 \
F(S, u64, retry_after_ms, "0: no hint")                                           \
F(S, bytes, data, "further members of the JSON-RPC error's data, without braces, or empty")
#define IPC_FIELDS_ok(F, S)
#define IPC_FIELDS_doctor(F, S)
#define IPC_FIELDS_doctor_report(F, S) F(S, blob, json, "array of {process, layer, state, detail, fix}")

#define IPC_FIELDS_gw_attach(F, S)
#define IPC_FIELDS_gw_config(F, S)                                                \
F(S, str, listener, "local or tunnel, by the socket it attached to")              \
F(S, bytes, session_key, "32 bytes: MACs session tokens, conveys nothing")        \
F(S, u64, revision, "the catalogue's revision")
#define IPC_FIELDS_authenticate(F, S) F(S, str, credential, "bearer token, or empty")
#define IPC_FIELDS_identity(F, S)                                                 \
F(S, str, principal, "local, or a token's or person's name")                      \
F(S, str, permission_set, "catalogues are cached by it")                          \
F(S, u64, cache_ms, "may be remembered this long, at most 30 s")
#define IPC_FIELDS_catalogue_get(F, S) F(S, str, permission_set, "as IDENTITY gave it")
#define IPC_FIELDS_catalogue_item(F, S)                                           \
F(S, u8, list, "enum mcp_list")                                             \
F(S, str, name, "exposed name")                                                   \
F(S, str, uri, "of a resource, or a template's; else empty")                      \
F(S, hash, version, "of what serves; zero for management tools")                  \
F(S, blob, json, "the MCP Tool, Prompt, Resource or ResourceTemplate object, schemas byte for byte as stored; {} of a stopped resource")
#define IPC_FIELDS_catalogue_end(F, S)                                            \
F(S, u64, revision, "the revision just sent")                                     \
F(S, u32, count, "items sent")
#define IPC_FIELDS_catalogue_changed(F, S) F(S, u64, revision, "the new revision")         \
F(S, u8, lists, "mask of 1 << enum mcp_list: which lists changed")
#define IPC_FIELDS_authorise(F, S)                                                \
F(S, str, credential, "bearer token, or empty")                                   \
F(S, u8, method, "enum call_method")                                              \
F(S, str, tool, "exposed name of what is called: params.name, or of the resource or template that params.uri names") \
F(S, str, protocol, "MCP revision of the request")                                \
F(S, str, client, "clientInfo name and version, untrusted, for the record")       \
F(S, bytes, capabilities, "the client's capabilities object as JSON, at most 8 KiB") \
F(S, u32, declared, "mask of enum client_capability: the ones in it that we know") \
F(S, u8, task, "enum task_wish")                                                  \
F(S, id, approval, "zero, or the per-call approval that an earlier PENDING named") \
F(S, id, session, "the legacy session's random id, or zero: circuit breakers count by it") \
F(S, str, trace, "W3C traceparent of params._meta, or empty: for the record")      \
F(S, id, alike, "digest of what the arguments say, however spelt (json_alike.h): circuit breakers count by it") \
F(S, blob, arguments, "the byte slice of params.arguments, or {}")
#define IPC_FIELDS_run_id(F, S)                                                   \
F(S, id, execution, "128 random bits")                                            \
F(S, u64, timeout_ms, "wall-clock limit of the run; ask again after it plus a margin")
#define IPC_FIELDS_task_state(F, S)                                               \
F(S, id, task, "128 random bits; the id of its execution")                        \
F(S, u8, status, "enum task_status")                                              \
F(S, str, message, "one sentence on it, or empty")                                \
F(S, u64, created_us, "Unix time in us")                                          \
F(S, u64, updated_us, "Unix time in us")                                          \
F(S, u64, ttl_ms, "kept so long from its creation on")                            \
F(S, u64, poll_ms, "ask again not before that")                                   \
F(S, u16, failure, "enum failure, 0 unless it failed")                            \
F(S, u32, body_len, "bytes of the body at the front of the blob; the rest is meta") \
F(S, blob, body_meta, "completed: the CallToolResult object without _meta, then _meta; input_required: the object of questions")
#define IPC_FIELDS_task_get(F, S)                                                 \
F(S, str, credential, "bearer token, or empty")                                   \
F(S, id, task, "as TASK_STATE gave it")
#define IPC_FIELDS_task_update(F, S)                                              \
F(S, str, credential, "bearer token, or empty")                                   \
F(S, id, task, "as TASK_STATE gave it")                                           \
F(S, blob, answers, "JSON object: the client's answers by key")
#define IPC_FIELDS_task_cancel(F, S)                                              \
F(S, str, credential, "bearer token, or empty")                                   \
F(S, id, task, "as TASK_STATE gave it")
#define IPC_FIELDS_task_changed(F, S)                                             \
F(S, id, task, "the task")                                                        \
F(S, u8, status, "enum task_status")                                              \
F(S, str, principal, "whose it is")
#define IPC_FIELDS_pending(F, S)                                                  \
F(S, id, approval, "uuid of the approval request; goes back in the next AUTHORISE") \
F(S, u64, expires_ms, "Unix time in ms after which it counts as refused")         \
F(S, u64, poll_ms, "ask again not before that")
#define IPC_FIELDS_decided(F, S)                                                  \
F(S, id, approval, "uuid of the approval request")                                \
F(S, u8, approved, "1: approved, 0: rejected or expired")
#define IPC_FIELDS_result(F, S)                                                   \
F(S, u8, is_error, "1: an isError result")                                        \
F(S, u16, failure, "enum failure when is_error")                                  \
F(S, str, fix, "what the reader should do about it, when is_error") \
F(S, blob, body, "the CallToolResult object as JSON, without _meta")
#define IPC_FIELDS_session_end(F, S)                                              \
F(S, id, session, "its random id")                                                \
F(S, u64, expires_ms, "Unix time in ms at which its token expires anyway")
#define IPC_FIELDS_session_ended(F, S)                                            \
F(S, id, session, "its random id")                                                \
F(S, u64, expires_ms, "forget it after this Unix time in ms")

#define IPC_FIELDS_run(F, S)                                                      \
F(S, id, execution, "as RUN_ID gave it")                                          \
F(S, blob, arguments, "must have the digest the context was sealed with")
#define IPC_FIELDS_call_event(F, S)                                               \
F(S, id, execution, "the call")                                                   \
F(S, u8, kind, "1 progress, 2 log, 3 questions, 4 pause")                         \
F(S, u32, number, "of the questions, from 1; else 0")                             \
F(S, bytes, json, "its params object, pre-scanned and redacted; questions: {key: {method, params}}; pause: {retry}")
#define IPC_FIELDS_call_result(F, S)                                              \
F(S, id, execution, "the call")                                                   \
F(S, u8, outcome, "enum outcome")                                                 \
F(S, u16, failure, "enum failure, 0 when done")                                   \
F(S, u64, duration_us, "from RUN to the end")                                     \
F(S, u32, body_len, "bytes of the body at the front of the blob; the rest is meta") \
F(S, blob, body_meta, "CallToolResult object without _meta, then the _meta object, both JSON")
#define IPC_FIELDS_cancel(F, S)                                                   \
F(S, id, execution, "only one that the sender authorised or ran")                 \
F(S, u16, failure, "why: FAILURE_KILLED, FAILURE_REVOKED, FAILURE_STOPPED; of admind also FAILURE_NONE: it has no row, forget it without a record")

#define IPC_FIELDS_call_answer(F, S)                                              \
F(S, id, execution, "the call")                                                   \
F(S, u32, number, "of the questions; another than the open one is ignored")       \
F(S, blob, json, "{key: {\"result\": ...} or {\"error\": ...}}")
#define IPC_FIELDS_attach(F, S) F(S, id, execution, "the call")

#define IPC_FIELDS_held(F, S)                                                     \
F(S, id, execution, "the call")                                                   \
F(S, u8, listener, "enum listener: who may RUN it")                               \
F(S, bytes, arguments, "what records keep of them, at most ARGUMENTS_KEPT, where the intent has none") \
F(S, blob, context, "sealed by the vault for this sandbox's epoch")
#define IPC_FIELDS_record(F, S)                                                   \
F(S, id, execution, "the call")                                                   \
F(S, id, epoch, "the sandbox's, or its predecessor's, whose ledger it read")      \
F(S, u8, outcome, "enum outcome")                                                 \
F(S, u16, failure, "enum failure, 0 when done")                                   \
F(S, u8, delivered, "1: the result was handed to a live gateway")                 \
F(S, u64, started_us, "Unix time in us of RUN, 0 if it never ran")                \
F(S, u64, ended_us, "Unix time in us")                                            \
F(S, u64, cpu_us, "CPU time the runner used; 2^64 - 1: not known")                \
F(S, bytes, intent, "the intent TLV from the sealed context: the whole row, should the database have lost it") \
F(S, u32, stdout_len, "bytes of stdout at the front of the blob")                 \
F(S, u32, meta_len, "of a task: bytes of the _meta object at the end of the blob; else 0") \
F(S, u32, kept_len, "of a task: bytes behind stdout; else 0")                     \
F(S, bytes, network, "what it connected to, NET_REPORT's array, or empty")            \
F(S, u32, connections, "of it, made or tried; for metrics, as the next two")           \
F(S, u32, net_refused, "connections refused by policy")                               \
F(S, u64, net_bytes, "of all connections, both directions")                           \
F(S, blob, stdout_result, "captured stdout, then the result or error body as JSON, as records keep it (common/scan/kept.h); of a task that, then the whole, then _meta")
#define IPC_FIELDS_epoch_begin(F, S) F(S, id, epoch, "random, new at each start")
#define IPC_FIELDS_epoch_item(F, S)                                               \
F(S, id, execution, "an execution")                                               \
F(S, u8, state, "1 held, 2 running, 3 ended and not yet acknowledged")
#define IPC_FIELDS_epoch_end(F, S) F(S, u32, count, "items named")
#define IPC_FIELDS_result_check(F, S)                                             \
F(S, id, execution, "the call")                                                   \
F(S, u32, schema_len, "bytes of the schema at the front of the blob")             \
F(S, blob, schema_value, "schema, then the value, both JSON")
#define IPC_FIELDS_result_errors(F, S)                                            \
F(S, str, summary, "one sentence")                                                \
F(S, blob, json, "array of {pointer, message}")

#define IPC_FIELDS_seal_context(F, S)                                             \
F(S, id, execution, "the call")                                                   \
F(S, id, epoch, "sandbox epoch it is for")                                        \
F(S, u8, listener, "enum listener: who may RUN it")                               \
F(S, u8, kind, "enum context_kind; only TOOL carries secrets and needs a seal")   \
F(S, blob, material, "TLV, enum context_tag: pre-image, seal, secrets, limits, intent, arguments digest")
#define IPC_FIELDS_sealed(F, S) F(S, blob, context, "what HELD carries")
#define IPC_FIELDS_content_get(F, S) F(S, id, approval, "uuid of the approval request")
#define IPC_FIELDS_content(F, S)                                                  \
F(S, str, kind, "tool, module, network or call")                                  \
F(S, str, state, "pending or what it became")                                     \
F(S, bytes, policy, "the newest sealed policy of review, or empty")               \
F(S, bytes, first, "the sealed first yes of two, or empty")                       \
F(S, blob, preimage, "version hash pre-image; kind call: common/request/callreq.h, module and network: common/request/grantreq.h")
#define IPC_FIELDS_decision_store(F, S)                                           \
F(S, id, approval, "uuid of the approval request")                                 \
F(S, u8, approved, "1 approve, 0 reject, 2 the first yes of two")                                         \
F(S, hash, content, "hash of what was reviewed; zero for a rejection")            \
F(S, str, actor, "administrator's name, or root")                                 \
F(S, u64, time_us, "Unix time in us")                                             \
F(S, str, reason, "of a rejection")                                               \
F(S, blob, seal, "the vault's seal; empty for a rejection")
#define IPC_FIELDS_session_lookup(F, S) F(S, hash, token, "SHA-256 of the login token")
#define IPC_FIELDS_session_info(F, S)                                             \
F(S, str, username, "administrator")                                              \
F(S, str, role, "administrator, reviewer or viewer")                              \
F(S, u64, expires_ms, "Unix time in ms after which it is over in any case")       \
F(S, u64, idle_ms, "Unix time in ms at which it is over unless it is used before")
#define IPC_FIELDS_admin_lookup(F, S) F(S, str, username, "as typed")
#define IPC_FIELDS_admin_record(F, S)                                             \
F(S, str, role, "of the user, or empty")                                          \
F(S, blob, verifier, "sealed by the vault; empty for an unknown user")
#define IPC_FIELDS_admin_store(F, S)                                              \
F(S, str, change, "setup (only if there is none), create, own_password, password, role or delete") \
F(S, str, username, "the administrator")                                          \
F(S, str, role, "its role; empty with delete")                                    \
F(S, str, actor, "who asked")                                                     \
F(S, blob, verifier, "sealed by the vault; empty with delete")
#define IPC_FIELDS_secret_store(F, S)                                             \
F(S, str, server, "server's name")                                                \
F(S, str, key, "secret's name")                                                   \
F(S, str, actor, "who asked")                                                     \
F(S, blob, value, "stored form: format, key id, nonce, ciphertext, tag")
#define IPC_FIELDS_audit_sign(F, S)                                               \
F(S, u64, seq, "row number of the head")                                          \
F(S, hash, head, "its chain hash")
#define IPC_FIELDS_audit_signature(F, S)                                           \
F(S, hash, signature, "HMAC-SHA256 by the audit key")                             \
F(S, bytes, key, "8 bytes: id of the master key that the audit key is of")
#define IPC_FIELDS_audit_event(F, S)                                              \
F(S, str, actor, "who")                                                           \
F(S, str, action, "login, login_failed, logout, password_change, approve_refused") \
F(S, str, subject, "on what")                                                     \
F(S, str, detail, "JSON object, written by the vault")
#define IPC_FIELDS_session_key_get(F, S)
#define IPC_FIELDS_session_key(F, S) F(S, bytes, key, "32 bytes")
#define IPC_FIELDS_context_key_get(F, S) F(S, id, epoch, "the sandbox's epoch, also its HELLO's")
#define IPC_FIELDS_context_key(F, S) F(S, bytes, key, "32 bytes")
/* clang-format on */

#include "ipc_fields.h" /* of all other messages */

#endif
