def main(region: str):
    return f"Region: {region}"
