/* see json_scan.h */
