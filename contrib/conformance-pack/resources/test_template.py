def main(id: str):
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
